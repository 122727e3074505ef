"""Lifetime of a driver's control plane: until an orderly stop, or an immediate cancellation."""

import asyncio
from collections.abc import Callable, Coroutine

Spawn = Callable[[str, Coroutine[object, object, None]], object]
"""Runs a driver's background task under a name. A task that fails or ends too early ends the program."""


class Lifetime:
    """The end of a driver; all tasks of a driver must be started by `spawn`.

    `stop`: admit nothing new, end connections one after another over `spread_seconds`, and let calls finish,
    for at most `drain_seconds` after that. `cancel`: end now, even while draining. Both may be called
    repeatedly, and cancelling a driver's task has the effect of `cancel`. A driver has ended when all its
    tasks have.
    """

    def __init__(self, drain_seconds: float, spawn: Spawn, spread_seconds: float = 0.0) -> None:
        self.drain_seconds = drain_seconds
        self._spread_seconds = spread_seconds
        self.spawn = spawn
        self._stopping = asyncio.Event()
        self._cancelled = asyncio.Event()

    @property
    def spread_seconds(self) -> float:
        """Return the seconds over which proxies are asked to connect elsewhere; 0 after a cancellation."""
        return 0.0 if self._cancelled.is_set() else self._spread_seconds

    @property
    def over(self) -> bool:
        """Return whether the driver must end, in order or at once."""
        return self._stopping.is_set() or self._cancelled.is_set()

    def stop(self) -> None:
        """Announce to the driver an orderly end."""
        self._stopping.set()

    def cancel(self) -> None:
        """Announce to the driver an immediate end."""
        self._cancelled.set()
        self._stopping.set()

    async def pause(self, seconds: float) -> None:
        """Wait for this many seconds, or until the driver must end."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def until_over(self, close: Callable[[float], Coroutine[object, object, None]]) -> None:
        """Wait for the end, then call `close` with its time limit in seconds.

        If cancelled meanwhile, `close` is called again with 0 seconds; the first call need not have finished.
        """
        try:
            await self._stopping.wait()
            if not self._cancelled.is_set() and await self._closed_in_order(close):
                return
        # The server of the driver must be closed even now, without waiting for open calls.
        except asyncio.CancelledError:
            self.cancel()
            await close(0.0)
            raise
        await close(0.0)

    async def _closed_in_order(self, close: Callable[[float], Coroutine[object, object, None]]) -> bool:
        """Call `close` with the drain time; return whether the call finished before a cancellation."""
        closing = asyncio.create_task(close(self.drain_seconds), name="driver closes")
        cancelled = asyncio.create_task(self._cancelled.wait(), name="driver is cancelled")
        try:
            await asyncio.wait((closing, cancelled), return_when=asyncio.FIRST_COMPLETED)
            if closing.done():
                closing.result()
                return True
            return False
        finally:
            closing.cancel()
            cancelled.cancel()
