"""Tests of the places that state the version: in this repository, and in trees that disagree."""

from pathlib import Path

import pytest

from tests.tools.commit import source_files
from tools.release.archives import File
from tools.release.versions import VersionsDisagree, check, stated, version

ROOT = Path(__file__).parents[4]
CHART = "deploy/chart/meshwright/Chart.yaml"
TREE = {
    "pyproject.toml": '[project]\nname = "meshwright"\nversion = "1.2.3"\n',
    CHART: "version: 1.2.3\nappVersion: 1.2.3\n",
    "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2030-01-01\n\nmeshwright/proxy:1.0.0\n",
    "docs/start/install.md": "docker build -t registry.example/meshwright/proxy:1.2.3 .\n",
    "README.md": "uv tool install dist/meshwright-1.2.3-py3-none-any.whl\n",
}


def _files(**changed: str) -> dict[str, File]:
    return {path: File(text.encode()) for path, text in {**TREE, **changed}.items()}


def test_all_places_of_this_repository_state_the_projects_version() -> None:
    """After a change of the version in pyproject.toml the error lists every other place to change."""
    files = source_files(ROOT)
    places = {each.place.split(":")[0] for each in stated(files)}
    assert {CHART, "Dockerfile", "README.md", "docs/start/install.md", "docs/kubernetes/cni.yaml"} <= places
    assert "meshwright/cli/commands/inject.py" in places
    assert check(files) == version(files)


@pytest.mark.parametrize(
    ("path", "text", "wrong"),
    [
        (CHART, "version: 1.2.4\nappVersion: 1.2.3\n", f"{CHART}: version states 1.2.4"),
        (CHART, "version: 1.2.3\nappVersion: 1.2\n", f"{CHART}: appVersion states 1.2"),
        (
            "docs/start/install.md",
            "\nmeshwright/control-plane:1.2.2\n",
            "docs/start/install.md:2 states 1.2.2",
        ),
        ("README.md", "dist/meshwright-1.2.30.tgz", "README.md:1 states 1.2.30"),
        (
            "CHANGELOG.md",
            "## [Unreleased]\n\n## [1.2.2] - 2029-01-01\n",
            "CHANGELOG.md has no heading `## [1.2.3] - YYYY-MM-DD`",
        ),
    ],
)
def test_place_with_another_version_is_named(path: str, text: str, wrong: str) -> None:
    """The error names the file, the line or field, and both versions."""
    with pytest.raises(VersionsDisagree) as raised:
        check(_files(**{path: text}))
    assert str(raised.value) == f"the version in pyproject.toml is 1.2.3, but {wrong}"


def test_other_versions_in_tests_and_in_the_changelog_are_allowed() -> None:
    """Tests use versions as examples, and the changelog keeps the names of earlier releases."""
    assert check(_files(**{"tests/test_images.py": "meshwright/proxy:0.0.1"})) == "1.2.3"
