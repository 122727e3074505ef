"""Tests of an installed third-party driver, found by its package metadata in a separate process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.deadline import HANG_SECONDS

ROOT = Path(__file__).parents[3]
METADATA = "Metadata-Version: 2.1\nName: idle-sidecars\nVersion: 1.0\n"
ASKED = "from meshwright.sidecars.registry import DriverRegistry; print(*DriverRegistry.discover().drivers)"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with an installed package that has a driver, as an installer leaves it."""
    (tmp_path / "idle_sidecars.py").write_text(
        "from tests.unit.sidecars.idle_driver import IdleDriver as Driver\n"
    )
    info = tmp_path / "idle_sidecars-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text("[meshwright.sidecars]\nidle = idle_sidecars:Driver\n")
    return tmp_path


def _discover(site: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", ASKED],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join((str(ROOT), str(site)))},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


def test_third_party_driver_is_found_beside_the_built_in_drivers(site: Path) -> None:
    """The entry point is sufficient, because our code does not name the driver."""
    done = _discover(site)
    assert done.stdout.split() == ["document", "envoy", "idle"], done.stderr


def test_invalid_third_party_driver_is_an_error_with_its_entry_point(site: Path) -> None:
    """An entry point that is no driver stops the discovery with an error that names it."""
    (site / "idle_sidecars.py").write_text("Driver = dict\n")
    done = _discover(site)
    assert "NotADriverError: entry point idle = idle_sidecars:Driver is not a sidecar driver" in done.stderr


def test_third_party_driver_with_a_built_in_name_is_refused(site: Path) -> None:
    """Two drivers with one name are an error."""
    (site / "idle_sidecars.py").write_text(
        "from tests.unit.sidecars.idle_driver import IdleDriver\n"
        "class Driver(IdleDriver):\n    name = 'envoy'\n"
    )
    assert "DuplicateDriverError: sidecar driver 'envoy' is registered twice" in _discover(site).stderr
