"""The demo's acceptance matrix, as a user walks it.

The matrix takes a minute or more. `make nightly` walks it with each kind of interception, and every other run
with the transparent one, which starts and checks more; without root with the explicit one.
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
    """Return a folder that anybody may go through, as most clones are; pytest's is closed to other users.

    Where something that sidecars need is closed they may read past that, and all else that is closed as well.
    """
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("mode", MODES)
async def test_every_cell_of_the_matrix_holds(envoy: str, open_folder: Path, mode: Mode) -> None:
    """Exit status 0, every cell as expected, and nothing left behind."""
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
