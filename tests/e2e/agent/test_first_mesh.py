"""Test of the walk-through in docs/start/first-mesh.md, run exactly as written, on a separate machine."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import Machine, machine
from tests.tools.deadline import HANG_SECONDS, until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
ROOT = Path(__file__).parents[3]
PLACE, LOOKING = "/tmp/hello", "export MESHWRIGHT_STATE="  # text of the page; the folder is replaced
PAGE = (ROOT / "docs" / "start" / "first-mesh.md").read_text("utf-8")
COMMANDS = re.findall(
    r"`(meshwright [^`]+)`", "".join(re.findall(r"^\| `meshwright .*\n", PAGE, re.MULTILINE))
)
AGENTS = ("127.0.0.1:15020", "127.0.0.1:15030")


class Walker:
    """A reader who types the page's commands, in a directory of the test."""

    def __init__(self, at: Machine, folder: Path, envoy: str) -> None:
        self.at = at
        self._folder = folder
        programs = [str(Path(sys.executable).parent), str(Path(envoy).parent), os.environ["PATH"]]
        self._environment = {**os.environ, "PATH": os.pathsep.join(programs)}

    def begin(self, text: str) -> subprocess.Popen[bytes]:
        """Start lines as a process group; background programs of the lines stay in that group."""
        typed = text.replace(PLACE, str(self._folder))
        with (self._folder.parent / "walk.log").open("ab") as log:
            return subprocess.Popen(
                [*self.at.enter, "bash", "-eu", "-c", typed],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def type(self, text: str) -> str:
        """Run lines and return their output."""
        typed = text.replace(PLACE, str(self._folder))
        return subprocess.run(
            [*self.at.enter, "bash", "-c", typed],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        ).stdout


@pytest.fixture
def walker(tmp_path: Path, envoy: str) -> Iterator[Walker]:
    """A reader on a machine without a network."""
    with machine() as at:
        yield Walker(at, tmp_path / "hello", envoy)


async def test_first_mesh_gives_the_documented_results(walker: Walker, tmp_path: Path) -> None:
    """Both sidecars are connected and synced, the allowed call is answered and the other one refused.

    Every command of the page's table exits with status 0.
    """
    (walk,) = [item for item in _shell(PAGE) if PLACE in item]
    first, looking, rest = walk.partition(LOOKING)
    assert "\nenvoy " not in walk
    begun = walker.begin(first)
    try:
        status = begun.wait(180)
        assert status == 0, (tmp_path / "walk.log").read_text()[-3000:]
        printed = ""

        async def answered() -> bool:
            nonlocal printed
            printed = walker.type(looking + rest)
            return "HTTP/1.1 200" in printed and printed.count(" synced ") == 2

        await until(answered, 120)
        state = looking + rest.partition("\n")[0]
        asked = {command: walker.type(f"{state}\n{command} >&2; echo $?") for command in COMMANDS}
    finally:
        for agent in AGENTS:
            walker.type(f"curl -sS -X POST http://{agent}/quitquitquit")
        os.killpg(begun.pid, signal.SIGTERM)
    rows = [line.split() for line in printed.splitlines() if line.startswith(("caller-1 ", "hello-1 "))]
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("caller-1", "default/caller", "connected"),
        ("hello-1", "default/hello", "connected"),
    ]
    assert all("synced" in row for row in rows)
    assert re.findall(r"^HTTP/1.1 (\d+)", printed, re.MULTILINE) == ["200", "403"]
    assert asked == dict.fromkeys(COMMANDS, "0\n")


def _shell(text: str) -> list[str]:
    """Return the blocks of shell commands of a page."""
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
