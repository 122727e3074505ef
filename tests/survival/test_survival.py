"""One of two endpoints fails under load: what came to no application is answered by the other.

With the defaults off half of all requests fail, for as long as one looks: the same program shows both.
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
def test_who_dies_takes_no_more_with_it_than_was_under_way(fault: str, tmp_path: Path) -> None:
    """And without the defaults it is half of everything."""
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
