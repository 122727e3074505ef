"""Processes that were started: whose children they are, and whether they are no more."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

SECONDS = 30.0


def children() -> set[str]:
    """Return the ids of our own children."""
    found: set[str] = set()
    for thread in Path(f"/proc/{os.getpid()}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            found.update((thread / "children").read_text("ascii").split())
    return found


async def gone(pid: int) -> None:
    """Wait until a process is no more; who adopts an orphan may take a while to bury it."""
    await until(lambda: not _lives(pid))


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; raise TimeoutError where it does not come to hold."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        # The state stands after the name, which is in parentheses.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
