"""Notices that files have changed: by inotify(7), and by looking now and then where that says nothing."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from inotify_simple import INotify, flags

LOOK_SECONDS: Final = 10.0
QUIET_SECONDS: Final = 0.1
_BURST: Final = 16
"""So many quiet times at most a burst lasts."""
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
    """Yield the digest of the files whenever it is another than before; first, as it is at the beginning.

    A burst of events is one look, `quiet_seconds` after the last. Every `look_seconds` there is one without
    an event: file systems exist that send none, and links may lead to where nobody watches.
    """
    known: str | None = None
    watched = tuple(directories)
    with _events() as events:
        while True:
            # Watched anew before each look: another directory may stand in the place of one.
            events.place(watched)
            found = await asyncio.to_thread(digest)
            if found != known:
                known = found
                yield found
            await events.heard(look_seconds, quiet_seconds)


class _Events:
    """Whether something has happened in directories; without a system that says so, never."""

    def __init__(self, system: INotify | None) -> None:
        self._system = system
        self._happened = asyncio.Event()

    def place(self, directories: Iterable[Path]) -> None:
        """Watch the directories that are there now; one that is watched already stays so."""
        if self._system is not None:
            for each in directories:
                with contextlib.suppress(OSError):  # it is not there, or there are too many watches
                    self._system.add_watch(str(each), _CHANGE)

    def read(self) -> None:
        """Take what has happened."""
        if self._system is not None and self._system.read(timeout=0):
            self._happened.set()

    async def heard(self, seconds: float, quiet: float) -> None:
        """Return when something has happened and it is quiet again, or after so many seconds."""
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
    except OSError:  # this user has as many as there may be
        yield _Events(None)
        return
    events, loop = _Events(system), asyncio.get_running_loop()
    loop.add_reader(system.fileno(), events.read)
    try:
        yield events
    finally:
        loop.remove_reader(system.fileno())
        system.close()
