"""Whether an event loop still turns: it beats many times a second, others look when it last did."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Final

BEAT_SECONDS: Final = 0.05
"""Often, so that a loop that was held for a moment is found out."""
STALE_SECONDS: Final = 10.0


def is_stale(last: float, now: float, limit: float = STALE_SECONDS) -> bool:
    """Say whether a loop that last beat at `last` must be taken for dead at `now` (same clock, seconds)."""
    return now - last > limit


class Heartbeat:
    """The moment of a loop's last beat, readable from any thread.

    `clock` is monotonic and in seconds. `lateness` is how late the last beat came, `worst` the most any
    beat came late since it was last taken: both say how long the loop was held.
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
        """Return the seconds since the last beat."""
        return self._clock() - self._last

    def beat(self, late: float = 0.0) -> None:
        """Note that the loop turned, `late` seconds after it should have."""
        self._last = self._clock()
        self.lateness = max(late, 0.0)
        self._worst = max(self._worst, self.lateness)

    def alive(self) -> bool:
        """Say whether the loop turned recently enough."""
        return not is_stale(self._last, self._clock(), self._limit)

    def take_worst(self) -> float:
        """Return the worst lateness since this was last asked, and begin anew."""
        worst, self._worst = self._worst, 0.0
        return worst


async def beating(
    heartbeat: Heartbeat,
    clock: Callable[[], float],
    beats: int | None = None,
    period: float = BEAT_SECONDS,
    told: Callable[[float], None] = lambda _: None,
) -> None:
    """Beat each `period` seconds until cancelled (or `beats` times), measuring how late the loop was.

    `told` hears of each beat how late it came, in seconds.
    """
    counted = itertools.count() if beats is None else range(beats)
    for _ in counted:
        due = clock() + period
        await asyncio.sleep(period)
        heartbeat.beat(clock() - due)
        told(heartbeat.lateness)
