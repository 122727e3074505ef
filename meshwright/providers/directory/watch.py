"""Watch of a directory: paths named by events of the system, and whether events may have been lost."""

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from meshwright.providers.directory import inotify
from meshwright.providers.directory.files import is_manifest
from meshwright.providers.directory.inotify import FolderEvents

GATHER_SECONDS: Final = 0.05
"""Seconds for which the events of a burst are gathered."""

_log = structlog.get_logger("providers.directory.watch")


class DirectoryWatch:
    """Collector of the system's events for a directory, while `run` runs; `woken` is set after an event.

    `retry` is the time between attempts while events are unavailable. With `polling`, files are compared
    periodically instead.
    """

    def __init__(self, path: Path, *, retry: timedelta, polling: bool) -> None:
        self._path = path
        self._retry = retry
        self._polling = polling
        self._touched: set[str] = set()
        self._unsure = True
        self._woke = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._moved = asyncio.Event()
        self.woken = asyncio.Event()

    def take(self) -> tuple[set[str], bool]:
        """Return the paths named by events since the last call, and whether events may have been lost."""
        touched, self._touched = self._touched, set()
        unsure, self._unsure = self._unsure, False
        return touched, unsure

    async def run(self) -> None:
        """Collect changed paths until cancelled; without events, demand periodic listings."""
        logged = False
        while True:
            try:
                if self._polling or not inotify.is_there():
                    await self._look_again_and_again()
                else:
                    await self._listen()
            except (OSError, RuntimeError) as error:
                if not logged:
                    _log.warning("directory cannot be watched", directory=str(self._path), error=str(error))
                logged = True
            await asyncio.sleep(self._retry.total_seconds())
            self._look_everywhere()

    async def _listen(self) -> None:
        """Collect changed paths from inotify until cancelled; watch new folders too."""
        system, loop = FolderEvents(), asyncio.get_running_loop()
        try:
            loop.add_reader(system, partial(self._hear, system))
            while True:
                self._moved.clear()
                await asyncio.to_thread(system.place, self._path)
                # Changes before the watch was complete have brought no event.
                self._look_everywhere()
                await self._moved.wait()
        finally:
            loop.remove_reader(system)
            system.close()
            self._calm()

    def _hear(self, system: FolderEvents) -> None:
        heard = system.read()
        self._touched |= heard.complete
        self._touched |= heard.others
        # A new folder may be among lost events; the event of a symlink does not show a folder behind it.
        if heard.folders or heard.lost or any(map(_is_link, heard.complete | heard.others)):
            self._moved.set()
            self._unsure = True
        now = asyncio.get_running_loop().time()
        if any(is_manifest(path.rpartition("/")[2]) for path in heard.complete):
            self._wake_at(max(now, self._woke + GATHER_SECONDS), now)
        elif heard.others or heard.complete or heard.folders or heard.lost:
            self._wake_at(now + GATHER_SECONDS, now)

    def _wake_at(self, moment: float, now: float) -> None:
        if moment <= now:
            self._wake()
        elif self._timer is None or moment < self._timer.when():
            self._calm()
            self._timer = asyncio.get_running_loop().call_at(moment, self._wake)

    def _wake(self) -> None:
        self._calm()
        self._woke = asyncio.get_running_loop().time()
        self.woken.set()

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _look_again_and_again(self) -> None:
        """Collect changed paths from the package watchfiles, until cancelled."""
        import watchfiles  # imported here, because it takes 1 MB that a server with inotify saves

        watch = watchfiles.awatch(
            self._path,
            watch_filter=None,
            debounce=50,
            step=10,
            rust_timeout=int(self._retry.total_seconds() * 1000),
            yield_on_timeout=True,
            force_polling=self._polling or None,
            poll_delay_ms=100,
            ignore_permission_denied=True,
        )
        # Changes before the watch was complete have brought no event: look again soon, when it usually is,
        # and at its first answer, which proves that the watch is complete.
        asyncio.get_running_loop().call_later(0.1, self._look_everywhere)
        proven = False
        async for events in watch:
            self._touched.update(path for _, path in events)
            if not proven:
                self._look_everywhere()
            elif events:
                self.woken.set()
            proven = True

    def _look_everywhere(self) -> None:
        """Wake the reader of the directory, and demand a full listing, because events may be lost."""
        self._unsure = True
        self.woken.set()


def _is_link(path: str) -> bool:
    """Return whether the path is a symlink that may lead to a folder."""
    return not is_manifest(path.rpartition("/")[2]) and Path(path).is_symlink()
