"""A running source for tests, and waiting for its changes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

from meshwright.providers.contract import Source

SourceT = TypeVar("SourceT", bound=Source)
DEADLINE = 60.0


class WatchedSource(Generic[SourceT]):
    """A source, and whether it has reported a change."""

    def __init__(self, source: SourceT) -> None:
        self.source = source
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Record a change."""
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for changes until the condition holds."""
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


WatchedT = TypeVar("WatchedT", bound=WatchedSource)  # type: ignore[type-arg]  # of whatever source


@contextlib.asynccontextmanager
async def running(watched: WatchedT) -> AsyncIterator[WatchedT]:
    """Run the source until the block ends."""
    task = asyncio.create_task(watched.source.run(watched.changed))
    try:
        yield watched
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
