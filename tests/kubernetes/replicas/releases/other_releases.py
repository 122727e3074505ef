"""Programs of other releases: an earlier commit, and this tree with another version number."""

import shutil
import subprocess
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import pytest

from meshwright.records.content import NEWEST
from meshwright.replicas.forms import SEEN_SECONDS
from tests.tools.forked_cli import ROOT

EARLIER: Final = "98e3bcee72157cd9b75be87008293b9af68ef396"
"""The first commit in which servers share all records, root rotations and views."""

EARLIER_VERSION: Final = "0.1.9"
LATER_VERSION: Final = "0.2.1"

_PACKAGES: Final = ("catalog", "certs", "meshwright", "protos", "xds")
_GENERATED: Final = "*_pb2*.py"


def earlier_release(folder: Path) -> Path:
    """Write the packages of the earlier commit into a folder; skip the test in a clone without history."""
    folder.mkdir()
    packed = subprocess.run(
        ("git", "-C", str(ROOT), "archive", EARLIER, "--", *_PACKAGES), capture_output=True, check=False
    )
    if packed.returncode != 0:
        pytest.skip(f"commit {EARLIER[:8]} is not in this clone: run `git fetch --unshallow`")
    subprocess.run(("tar", "-x", "-C", str(folder)), input=packed.stdout, check=True)
    for module in (ROOT / "protos").rglob(_GENERATED):
        to = folder / module.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(module, to)
    _write_metadata(folder, EARLIER_VERSION)
    return folder


def later_release(folder: Path) -> Path:
    """Write this tree with a later version number into a folder."""
    folder.mkdir()
    for name in _PACKAGES:
        (folder / name).symlink_to(ROOT / name)
    _write_metadata(folder, LATER_VERSION)
    return folder


def release_with_newer_form(folder: Path, form: int, seen_seconds: int) -> Path:
    """Write this tree as a release that reads a newer form of records.

    Its leader waits `seen_seconds` for older servers, in place of ten minutes.
    """
    later_release(folder)
    (folder / "meshwright").unlink()
    shutil.copytree(ROOT / "meshwright", folder / "meshwright", ignore=shutil.ignore_patterns("__pycache__"))
    _replace(
        folder / "meshwright" / "records" / "content.py",
        f"NEWEST: Final = {NEWEST}",
        f"NEWEST: Final = {form}",
    )
    _replace(
        folder / "meshwright" / "replicas" / "forms.py",
        f"SEEN_SECONDS: Final = {SEEN_SECONDS}",
        f"SEEN_SECONDS: Final = {seen_seconds}.0",
    )
    return folder


def _replace(path: Path, line: str, other: str) -> None:
    text = path.read_text()
    assert text.count(line) == 1, f"{path} has no line {line!r}"
    path.write_text(text.replace(line, other))


def _write_metadata(folder: Path, version: str) -> None:
    """Write the version, and the entry points by which a server finds its drivers."""
    place = folder / f"meshwright-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: meshwright\nVersion: {version}\n")
    points = distribution("meshwright").read_text("entry_points.txt")
    assert points is not None, "the installed package has no entry points"
    (place / "entry_points.txt").write_text(points)
