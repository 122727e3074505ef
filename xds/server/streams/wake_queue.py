"""Queue of streams with work to do: a limited number in each turn of the event loop, in order."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 512
"""Streams that make and write their responses in one turn of the event loop, within TURN_SECONDS.

Between turns gRPC's events are handled: written messages, and the first answers. gRPC's thread wakes the loop
for each event, unless the 278 bytes of its socket's buffer are unread; then it waits until all are read
together. Therefore a turn has more streams than that. With 128 each event woke the loop, and a push to 1000
streams took a fifth longer.
"""

TURN_SECONDS: Final = 0.02
"""Seconds after which no further stream is served in the same turn."""


class WakeQueue:
    """Calls the work of streams in order, at most AT_ONCE in one turn of the loop.

    `clock` is any clock in seconds that only goes forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_due = False

    def wake(self, work: Callable[[], None]) -> None:
        """Queue work, which must not raise, for one of the next turns. Must be called on the loop."""
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
        finally:  # the other streams keep their turn even if one raises
            if self._waiting and not self._is_due:
                self._next()

    def _next(self) -> None:
        self._is_due = True
        asyncio.get_running_loop().call_soon(self._turn)
