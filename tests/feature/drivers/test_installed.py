"""A driver of somebody else, installed: found by its package's own metadata, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
METADATA = "Metadata-Version: 2.1\nName: paper-sidecars\nVersion: 1.0\n"
ASKED = "from meshwright.sidecars.registry import DriverRegistry; print(*DriverRegistry.discover().drivers)"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a directory in which a package with a driver is installed, as an installer leaves it."""
    (tmp_path / "paper_sidecars.py").write_text("from tests.unit.sidecars.paper import Paper as Driver\n")
    info = tmp_path / "paper_sidecars-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text("[meshwright.sidecars]\npaper = paper_sidecars:Driver\n")
    return tmp_path


def _discover(site: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", ASKED],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join((str(ROOT), str(site)))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_third_party_s_driver_is_found_beside_ours(site: Path) -> None:
    """Nothing of ours names it."""
    done = _discover(site)
    assert done.stdout.split() == ["document", "envoy", "paper"], done.stderr


def test_a_third_party_s_broken_driver_is_named(site: Path) -> None:
    """By its entry point; it does not go unnoticed."""
    (site / "paper_sidecars.py").write_text("Driver = dict\n")
    done = _discover(site)
    assert "NotADriverError: entry point paper = paper_sidecars:Driver is no sidecar driver" in done.stderr


def test_a_third_party_cannot_take_a_name_of_ours(site: Path) -> None:
    """Two drivers of one name are an error, whoever came first."""
    (site / "paper_sidecars.py").write_text(
        "from tests.unit.sidecars.paper import Paper\nclass Driver(Paper):\n    name = 'envoy'\n"
    )
    assert "DuplicateDriverError: sidecar driver 'envoy' is registered twice" in _discover(site).stderr
