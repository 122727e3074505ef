"""Started processes: the children of this process, and whether a process has ended."""

import contextlib
import os
from pathlib import Path

from tests.tools.deadline import until

SECONDS = 30.0


def children() -> set[str]:
    """Return the ids of our own children."""
    result: set[str] = set()
    for thread in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            result.update((thread / "children").read_text("ascii").split())
    return result


async def gone(pid: int) -> None:
    """Wait until a process has ended; the reaper of an orphan may take a while."""
    await until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    try:
        # The state is after the name, which is in parentheses.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
