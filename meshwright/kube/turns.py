"""Pauses in long work, in which the event loop runs other tasks."""

import asyncio
from typing import Final

_TURN: Final = 0.004
"""Seconds after which other tasks get a turn."""


class Turn:
    """A timer for long work, which yields the event loop after every 4 ms."""

    __slots__ = ("_due", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + _TURN

    async def over(self) -> None:
        """Let other tasks of the event loop run if 4 ms of work have passed."""
        if self._loop.time() >= self._due:
            await asyncio.sleep(0)
            self._due = self._loop.time() + _TURN
