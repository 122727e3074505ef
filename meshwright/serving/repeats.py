"""Rate limit for log lines that strangers can cause: the first of a kind at once, further ones as a count.

A period begins with the first event of a kind. Events of the same kind within the period are counted, and the
count is due at the end of the period. A kind without events in a period is forgotten, so the next event is a
first one. Times are seconds of any clock that only goes forward.
"""

from dataclasses import dataclass, field
from typing import Final

PERIOD_SECONDS: Final = 60.0
MOST_KINDS: Final = 32
"""Kinds with a count of their own. Further ones share OTHER, because strangers may invent kinds."""
OTHER: Final = "other"


@dataclass(slots=True)
class _Period:
    began: float
    count: int = 0


@dataclass(frozen=True, slots=True)
class Repeats:
    """Counts of repeated events by kind, each for a period of `seconds`."""

    seconds: float = PERIOD_SECONDS
    _periods: dict[str, _Period] = field(default_factory=dict)

    def kind(self, wanted: str) -> str:
        """Return the kind under which an event is counted: OTHER if there are too many kinds already."""
        return wanted if wanted in self._periods or len(self._periods) < MOST_KINDS else OTHER

    def first(self, wanted: str, now: float) -> bool:
        """Count an event; return True for the first of a kind, which should be logged at once."""
        kind = self.kind(wanted)
        if (period := self._periods.get(kind)) is not None:
            period.count += 1
            return False
        self._periods[kind] = _Period(now)
        return True

    def due(self, now: float) -> dict[str, int]:
        """Return the counts of the kinds with an ended period, and begin the next period of these kinds."""
        result = dict[str, int]()
        for kind, period in tuple(self._periods.items()):
            if now - period.began < self.seconds:
                continue
            # A kind with events goes on with a new period, so that its next event is counted and not logged
            # at once.
            if period.count:
                result[kind] = period.count
                self._periods[kind] = _Period(now)
            else:
                del self._periods[kind]
        return result

    def rest(self) -> dict[str, int]:
        """Return all remaining counts, and forget every kind, at the end of the server."""
        result = {kind: period.count for kind, period in self._periods.items() if period.count}
        self._periods.clear()
        return result

    def next_due(self) -> float | None:
        """Return the time at which the earliest period ends, or None without a running period."""
        return min((period.began + self.seconds for period in self._periods.values()), default=None)
