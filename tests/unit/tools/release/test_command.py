"""Tests of the command around a build: order of its checks, and what it does to `dist/`."""

from pathlib import Path

import pytest

from tests.tools.commit import commit
from tools.release.__main__ import release, write_release
from tools.release.signatures import SigningError
from tools.release.source import SourceError
from tools.release.versions import VersionsDisagree


def test_release_replaces_the_release_before_and_keeps_other_files(tmp_path: Path) -> None:
    """An old wheel would make `pip install dist/*.whl` fail; a user's own file stays."""
    for name in ("meshwright-0.1.0-py3-none-any.whl", "SHA256SUMS.sig", "notes.txt"):
        (tmp_path / name).write_text("old")
    write_release({"SHA256SUMS": b"new"}, tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "SHA256SUMS": "new",
        "notes.txt": "old",
    }


def test_bad_key_is_reported_before_anything_is_built(tmp_path: Path) -> None:
    """The folder is no clone, so the key was looked at before the clone."""
    with pytest.raises(SigningError):
        list(release(tmp_path, tmp_path / "dist", tmp_path / "missing"))


def test_refused_release_leaves_the_old_one_alone(tmp_path: Path) -> None:
    """A dirty tree and a version that disagrees end the command before it touches `dist/`."""
    (tmp_path / ".gitignore").write_text("dist\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    chart = tmp_path / "deploy/chart/meshwright/Chart.yaml"
    chart.parent.mkdir(parents=True)
    chart.write_text("version: 1.2.3\nappVersion: 1.2.2\n")
    (tmp_path / "CHANGELOG.md").write_text("\n## [1.2.3] - 2030-01-01\n")
    commit(tmp_path)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/SHA256SUMS").write_text("old")
    with pytest.raises(VersionsDisagree, match=r"appVersion states 1\.2\.2"):
        list(release(tmp_path, tmp_path / "dist", None))
    chart.write_text("version: 1.2.3\nappVersion: 1.2.3\n")
    with pytest.raises(SourceError, match=r"Chart\.yaml"):
        list(release(tmp_path, tmp_path / "dist", None))
    assert (tmp_path / "dist/SHA256SUMS").read_text() == "old"
