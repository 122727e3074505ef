"""Test of one of two endpoints that fails under load: the other one answers undelivered requests.

Without our defaults, half of all requests fail continuously; the same program shows both.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.envoy

AT_ONCE = 8
"""As many requests are under way at a time: what was with the one that died may be lost with it."""


@pytest.mark.parametrize("fault", ["application killed", "Envoy killed"])
def test_dead_endpoint_loses_only_the_requests_in_progress(fault: str, tmp_path: Path) -> None:
    """Without the defaults, it loses more than a quarter of all requests."""
    output = tmp_path / "survives.json"
    command = [sys.executable, "-m", "tests.survival", "--endpoints", "2", "--seconds", "3"]
    command += ["--fault", fault, "--defaults", "off", "ours", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text())["outcomes"]
    name = fault.replace(" ", "-")
    off, ours = result[f"{name}/2/off"], result[f"{name}/2/ours"]
    assert off["failed"] > off["requests"] / 4
    assert ours["failed"] <= AT_ONCE
    assert ours["requests"] > 50
