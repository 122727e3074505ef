"""Test of the demo's acceptance matrix, run as a user runs it.

The matrix takes a minute or more. `make nightly` runs it with each kind of interception. Other runs use only
the transparent one, which starts and checks more, or without root the explicit one.
"""

import asyncio
import os
import re
import sys
import tempfile
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.interception import missing_for_transparent
from demo.topology import Mode

pytestmark = [pytest.mark.envoy, pytest.mark.timeout(600)]
TRANSPARENT = pytest.param(
    Mode.TRANSPARENT,
    marks=[
        pytest.mark.root,
        pytest.mark.skipif(bool(missing_for_transparent()), reason=missing_for_transparent() or "it can run"),
    ],
)
IS_LONG = os.environ.get("MESHWRIGHT_SOAK") == "long"
MODES = [Mode.EXPLICIT, TRANSPARENT] if IS_LONG or missing_for_transparent() else [TRANSPARENT]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that all users may traverse, like most clones.

    Pytest's folder is closed to other users. In a closed folder, sidecars would need a capability to read
    past all permissions.
    """
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("mode", MODES)
async def test_demo_passes_every_check_of_its_matrix_and_leaves_nothing_behind(
    envoy: str, open_folder: Path, mode: Mode
) -> None:
    """`demo --once` exits with status 0, passes all 200 checks and reports that nothing is left behind."""
    demo = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "demo", "--once", "--mode", mode.value, "--state", str(open_folder)),
        stdout=PIPE,
        stderr=STDOUT,
    )
    try:
        output = (await demo.communicate())[0].decode()
    finally:
        if demo.returncode is None:
            demo.terminate()
            await demo.wait()

    match = re.search(r"^matrix: (\d+) of (\d+) checks passed$", output, re.MULTILINE)
    assert demo.returncode == 0, output
    assert match, output
    assert match[1] == match[2] == "200", output
    assert "left behind: nothing" in output
