"""Tests of the archives of releases: equal bytes, content, and faults."""

import io
import lzma
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools import release_before
from tools.release_before import CONTENT, ArchiveError, archive, before

PROJECT = '[project]\nname = "meshwright"\nversion = "0.3.0"\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one file in each folder of an archive, generated modules, and other files."""
    for folder in (*CONTENT, "tests"):
        if folder != "pyproject.toml":
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / "file.txt").write_text(folder)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "Release")):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "protos" / "envoy").mkdir()
    (tmp_path / "protos" / "envoy" / "__init__.py").touch()
    (tmp_path / "catalog" / "draft.txt").write_text("not committed")
    return tmp_path


def test_archive_has_the_commit_and_the_generated_modules(checkout: Path) -> None:
    """Equal content makes equal bytes, whatever the times of the files are."""
    written = archive(checkout, "0.3.0")
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(written))) as tar:
        members = [(item.name, item.mtime, item.uid, item.uname) for item in tar]
    names = [*(f"{item}/file.txt" for item in CONTENT if "." not in item), "protos/envoy/__init__.py"]
    assert members == [(name, 0, 0, "") for name in sorted((*names, "pyproject.toml"))]
    (checkout / "protos" / "envoy" / "__init__.py").touch()
    assert archive(checkout, "0.3.0") == written


def test_archive_of_another_version_or_without_generated_modules_is_refused(checkout: Path) -> None:
    """A wrong checkout, and a checkout without `make setup`, are named."""
    with pytest.raises(ArchiveError, match=r"^the commit has version 0\.3\.0, not 0\.2\.0: check out"):
        archive(checkout, "0.2.0")
    (checkout / "protos" / "envoy" / "__init__.py").unlink()
    with pytest.raises(ArchiveError, match=r"^protos/ has no generated modules: run `make setup`$"):
        archive(checkout, "0.3.0")


@pytest.mark.parametrize(
    ("names", "said"), [((), "none"), (("0.1.0.tar.xz", "0.2.0.tar.xz"), "0.1.0, 0.2.0")]
)
def test_release_before_is_the_only_archive(
    names: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an archive, or with several, tests fail and name the folder."""
    monkeypatch.setattr(release_before, "ARCHIVES", tmp_path)
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ArchiveError) as caught:
        before()
    assert str(caught.value) == f"{tmp_path} must have one archive, but has {said}"
    for name in names[1:]:
        (tmp_path / name).unlink()
        assert before() == "0.1.0"
