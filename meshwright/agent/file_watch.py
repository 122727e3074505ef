"""Watch for changed files: by inotify(7), and by a regular check where inotify sends no events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from inotify_simple import INotify, flags

LOOK_SECONDS: Final = 10.0
QUIET_SECONDS: Final = 0.1
_BURST: Final = 16
"""Longest burst, in multiples of the quiet time."""
_CHANGE: Final = (
    flags.MODIFY | flags.ATTRIB | flags.CLOSE_WRITE | flags.CREATE | flags.DELETE | flags.MOVED_FROM
    | flags.MOVED_TO | flags.DELETE_SELF | flags.MOVE_SELF
)  # fmt: skip


async def changes(
    directories: Iterable[Path],
    digest: Callable[[], str],
    look_seconds: float = LOOK_SECONDS,
    quiet_seconds: float = QUIET_SECONDS,
) -> AsyncGenerator[str, None]:
    """Yield the digest of the files at the start, and after every change of the digest.

    A burst of events causes one check, `quiet_seconds` after the last event. Every `look_seconds` the files
    are checked without an event, because some file systems never send events, and links may lead to unwatched
    directories.
    """
    known: str | None = None
    watched = tuple(directories)
    with _events() as events:
        while True:
            # Add watches again before each check, because a directory may have been replaced by another one.
            events.place(watched)
            result = await asyncio.to_thread(digest)
            if result != known:
                known = result
                yield result
            await events.wait_until_quiet(look_seconds, quiet_seconds)


class _Events:
    """inotify events of the watched directories; without inotify there are never any."""

    def __init__(self, system: INotify | None) -> None:
        self._system = system
        self._happened = asyncio.Event()

    def place(self, directories: Iterable[Path]) -> None:
        """Add watches for the directories that exist; existing watches stay."""
        if self._system is not None:
            for directory in directories:
                with contextlib.suppress(OSError):  # it is not there, or there are too many watches
                    self._system.add_watch(str(directory), _CHANGE)

    def read(self) -> None:
        """Read the pending inotify events, so that `wait_until_quiet` returns."""
        if self._system is not None and self._system.read(timeout=0):
            self._happened.set()

    async def wait_until_quiet(self, seconds: float, quiet: float) -> None:
        """Return when events have occurred and ended, or after `seconds` without any.

        Events have ended when `quiet` seconds pass without another one.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._happened.wait()
        for _ in range(_BURST):
            if not self._happened.is_set():
                return
            self._happened.clear()
            await asyncio.sleep(quiet)


@contextlib.contextmanager
def _events() -> Iterator[_Events]:
    try:
        system = INotify(nonblocking=True)
    except OSError:  # the user's limit of inotify instances is reached
        yield _Events(None)
        return
    events, loop = _Events(system), asyncio.get_running_loop()
    loop.add_reader(system.fileno(), events.read)
    try:
        yield events
    finally:
        loop.remove_reader(system.fileno())
        system.close()
