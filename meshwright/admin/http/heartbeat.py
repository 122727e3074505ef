"""Heartbeat of an event loop: the loop beats many times a second, and other threads check the last beat."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Final

BEAT_SECONDS: Final = 0.05
"""Seconds between two beats: short, in order to notice a block of a fraction of a second."""
STALE_SECONDS: Final = 10.0


def is_stale(last: float, now: float, limit: float = STALE_SECONDS) -> bool:
    """Return True if a loop with its last beat at `last` is dead at `now` (same clock, seconds)."""
    return now - last > limit


class Heartbeat:
    """Time of the last beat of a loop, readable from any thread.

    `clock` is monotonic, in seconds. `lateness` is the delay of the last beat in seconds, which is the time
    for which the loop was blocked.
    """

    __slots__ = ("_clock", "_last", "_limit", "_worst", "lateness")

    def __init__(self, clock: Callable[[], float], limit: float = STALE_SECONDS) -> None:
        self._clock = clock
        self._limit = limit
        self._last = clock()
        self._worst = 0.0
        self.lateness = 0.0

    @property
    def age(self) -> float:
        """Return the seconds since the last beat of the event loop."""
        return self._clock() - self._last

    def beat(self, late: float = 0.0) -> None:
        """Record a beat of the event loop, `late` seconds after the planned time."""
        self._last = self._clock()
        self.lateness = max(late, 0.0)
        self._worst = max(self._worst, self.lateness)

    def alive(self) -> bool:
        """Return True if the last beat of the event loop is at most `limit` seconds old."""
        return not is_stale(self._last, self._clock(), self._limit)

    def take_worst(self) -> float:
        """Return the longest delay of a beat in seconds since the last call, and start again from 0."""
        worst, self._worst = self._worst, 0.0
        return worst


async def beating(
    heartbeat: Heartbeat,
    clock: Callable[[], float],
    beats: int | None = None,
    period: float = BEAT_SECONDS,
    report_lag: Callable[[float], None] = lambda _: None,
) -> None:
    """Beat every `period` seconds until cancelled, or `beats` times, and measure the lateness.

    `report_lag` is called with the lateness of each beat in seconds.
    """
    counted = itertools.count() if beats is None else range(beats)
    for _ in counted:
        due = clock() + period
        await asyncio.sleep(period)
        heartbeat.beat(clock() - due)
        report_lag(heartbeat.lateness)
