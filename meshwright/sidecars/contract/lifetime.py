"""How long a driver's control plane lives: until it is told to stop in order, or cancelled at once."""

import asyncio
from collections.abc import Callable, Coroutine

Spawn = Callable[[str, Coroutine[object, object, None]], object]
"""Runs a driver's background task under a name; one that fails, or ends too early, ends the program."""


class Lifetime:
    """Says when a driver is to end; every task of it runs by `spawn`.

    `stop`: serve nobody new, let the others finish, for at most `drain_seconds`. `cancel`: end now, also in
    the midst of draining. Both may be said more than once, and cancelling a driver's task is the same as
    `cancel`. A driver has ended when all its tasks have.
    """

    def __init__(self, drain_seconds: float, spawn: Spawn) -> None:
        self.drain_seconds = drain_seconds
        self.spawn = spawn
        self._stopping = asyncio.Event()
        self._cancelled = asyncio.Event()

    @property
    def over(self) -> bool:
        """Say whether the driver was told to end."""
        return self._stopping.is_set() or self._cancelled.is_set()

    def stop(self) -> None:
        """End in order."""
        self._stopping.set()

    def cancel(self) -> None:
        """End at once."""
        self._cancelled.set()
        self._stopping.set()

    async def pause(self, seconds: float) -> None:
        """Wait for so long, or until told to end."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def until_over(self, close: Callable[[float], Coroutine[object, object, None]]) -> None:
        """Wait for the end, and have `close` bring it about; it is given the seconds that it may take.

        It is called once more, with none, if cancelled while it closes; the earlier call need not end.
        """
        try:
            await self._stopping.wait()
            if not self._cancelled.is_set() and await self._closed_in_order(close):
                return
        except asyncio.CancelledError:
            await close(0.0)
            raise
        await close(0.0)

    async def _closed_in_order(self, close: Callable[[float], Coroutine[object, object, None]]) -> bool:
        """Close with the drain time; say whether that came to its end before a cancellation."""
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
