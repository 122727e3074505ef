"""Waking many streams without holding the event loop: some in each of its turns, in the order of asking."""

import asyncio
from collections import deque
from typing import Final

AT_ONCE: Final = 32
"""Streams woken in one turn of the event loop: each may make and write its responses in the next."""


class Waking:
    """Sets the events of streams that have something to do, AT_ONCE in one turn of the loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Event] = deque()
        self._left = AT_ONCE
        self._is_due = False

    def wake(self, work: asyncio.Event) -> None:
        """Wake a stream, now or in one of the next turns; to be called on the event loop."""
        if self._left:
            self._left -= 1
            work.set()
        else:
            self._waiting.append(work)
        self._next()

    def _turn(self) -> None:
        self._is_due, self._left = False, AT_ONCE
        while self._waiting and self._left:
            self._left -= 1
            self._waiting.popleft().set()
        if self._waiting:
            self._next()

    def _next(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)
