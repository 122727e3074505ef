"""Watching a directory: which paths events have named, and whether events can be trusted."""

import asyncio
from datetime import timedelta
from pathlib import Path

import structlog
import watchfiles

_log = structlog.get_logger(__name__)


class DirectoryWatch:
    """Gathers the system's events beneath a directory while `run` runs; `woken` is set when there is news.

    `retry` is how long to wait where there are no events to be had; `polling` looks by itself instead of
    asking the system for events.
    """

    def __init__(self, path: Path, *, retry: timedelta, polling: bool) -> None:
        self._path = path
        self._retry = retry
        self._polling = polling
        self._touched: set[str] = set()
        self._unsure = True
        self.woken = asyncio.Event()

    def take(self) -> tuple[set[str], bool]:
        """Return the paths that events named since the last time, and whether some may have been lost."""
        touched, self._touched = self._touched, set()
        unsure, self._unsure = self._unsure, False
        return touched, unsure

    async def run(self) -> None:
        """Gather until cancelled; while there are no events to be had, look everywhere again and again."""
        logged = False
        while True:
            try:
                await self._listen()
            except (OSError, RuntimeError) as error:
                if not logged:
                    _log.warning("directory_not_watched", directory=str(self._path), error=str(error))
                logged = True
            await asyncio.sleep(self._retry.total_seconds())
            self._look_everywhere()

    async def _listen(self) -> None:
        """Take events from the system until they end."""
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
        # What changed before the watch stood has brought no event: look again soon, when it usually stands,
        # and at its first answer, which proves it.
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
        """Wake, and trust no event until everything was listed."""
        self._unsure = True
        self.woken.set()
