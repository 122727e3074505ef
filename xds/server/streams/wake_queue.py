"""Having many streams do what is due without holding the event loop: some in each of its turns, in order."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 512
"""Streams that make and write their responses in one turn of the event loop, if it lasts no longer for it.

Between turns gRPC's events are taken: what was written, and the first answers. Its thread wakes for each of
them, unless the 278 bytes that its socket holds are unread: then it waits until all are taken together. So a
turn has more streams than that; with 128 each event woke it, and a push to a thousand took a fifth more.
"""

TURN_SECONDS: Final = 0.02
"""How long that turn may last: no further stream has its turn in it then."""


class WakeQueue:
    """Calls what streams have to do, AT_ONCE in one turn of the loop, in the order of asking.

    `clock` is any that only goes forward, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_due = False

    def wake(self, work: Callable[[], None]) -> None:
        """Have a stream do its work in one of the next turns; it must not raise. To be called on the loop."""
        self._waiting.append(work)
        if not self._is_due:
            self._next()

    def _turn(self) -> None:
        self._is_due = False
        until = self._clock() + TURN_SECONDS
        try:
            for _ in range(min(AT_ONCE, len(self._waiting))):
                self._waiting.popleft()()
                if self._clock() >= until:
                    break
        finally:  # whatever one stream's work comes to, the others' turn comes
            if self._waiting and not self._is_due:
                self._next()

    def _next(self) -> None:
        self._is_due = True
        asyncio.get_running_loop().call_soon(self._turn)
