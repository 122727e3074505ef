"""Long work on the event loop, cut into turns."""

import asyncio
from typing import Final

_TURN: Final = 0.004
"""Seconds after which others have a turn."""


class Turn:
    """Gives others a turn on the event loop whenever it was held for some milliseconds."""

    __slots__ = ("_due", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + _TURN

    async def over(self) -> None:
        """Give a turn if it is time."""
        if self._loop.time() >= self._due:
            await asyncio.sleep(0)
            self._due = self._loop.time() + _TURN
