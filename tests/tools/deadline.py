"""Deadlines and pauses of tests that wait for a condition.

A deadline is given for an idle machine. When it passes, the machine's slowness is measured, and the deadline
is extended once by that factor: a busy machine gets more time, and a fault on an idle one is found as soon as
before.

Pauses between two looks grow from 5 ms to 0.25 s, because each look costs CPU time that the program under
test needs. A wait takes at most a fifth longer than the condition, or 0.25 s.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

SHORTEST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.25
MOST_SLOWNESS: Final = 8.0
"""A machine that is slower than this is broken, or the test hangs."""
HANG_SECONDS: Final = 240.0
"""Seconds after which a program that should have ended hangs. On a busy machine one may take a minute."""
_SHARE_OF_WAIT: Final = 0.2
_REFERENCE_SECONDS: Final = 0.02
"""What the measured work takes on an idle core of the machines that deadlines were chosen on."""
_WORK: Final = 400_000


def slowness() -> float:
    """Return how many times slower this machine is now than the idle reference, from 1 to 8.

    The work is measured by the wall clock, so that a busy machine counts as a slow one.
    """
    began = time.monotonic()
    total = 0
    for number in range(_WORK):
        total += number
    return min(max((time.monotonic() - began) / _REFERENCE_SECONDS, 1.0), MOST_SLOWNESS)


class Deadline:
    """The moment at which a wait fails: `seconds` of an idle machine after its creation."""

    def __init__(self, seconds: float, measure: Callable[[], float] = slowness) -> None:
        self.seconds = seconds
        self._measure = measure
        self._began = time.monotonic()
        self._factor: float | None = None

    @property
    def waited(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._began

    def has_passed(self) -> bool:
        """Return whether the wait has failed; measure the machine when the given seconds are over."""
        if self.waited < self.seconds:
            return False
        if self._factor is None:
            self._factor = self._measure()
        return self.waited >= self.seconds * self._factor

    def pause(self) -> float:
        """Return the seconds until the next check."""
        return min(max(self.waited * _SHARE_OF_WAIT, SHORTEST_PAUSE), LONGEST_PAUSE)


def wait_until(holds: Callable[[], object], seconds: float, explain: Callable[[], object] = str) -> None:
    """Block until a condition holds; at the deadline raise AssertionError with what `explain` returns."""
    deadline = Deadline(seconds)
    while not holds():
        assert not deadline.has_passed(), f"not within {deadline.waited:.0f} s: {explain()}"
        time.sleep(deadline.pause())


async def until(
    holds: Callable[[], object | Awaitable[object]],
    seconds: float = 60.0,
    explain: Callable[[], object] = str,
) -> float:
    """Wait until a condition holds, and return the seconds that took; raise AssertionError at the deadline.

    The condition may be a coroutine function. A check that takes longer than the deadline is not interrupted.
    """
    deadline = Deadline(seconds)
    while True:
        result = holds()
        if await result if isinstance(result, Awaitable) else result:
            return deadline.waited
        assert not deadline.has_passed(), f"not within {deadline.waited:.0f} s: {explain()}"
        await asyncio.sleep(deadline.pause())
