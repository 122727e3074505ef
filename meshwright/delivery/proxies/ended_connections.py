"""Connections that were ended for what they cost: counted one by one, said once in a while."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from xds.hooks import Cause, Peer

SAID_SECONDS: Final = 10.0
"""The least time between two lines about one cause: a flood of connections must not be one of lines."""


@dataclass(frozen=True, slots=True)
class EndedCount:
    """So many connections were ended for one cause; `last` is one of them."""

    cause: Cause
    count: int
    last: Peer


class EndedConnections:
    """Those that were not said yet; time is seconds of any clock that only goes forward."""

    def __init__(self) -> None:
        self._counts: Counter[Cause] = Counter()
        self._last: dict[Cause, Peer] = {}
        self._said: dict[Cause, float] = {}

    def note(self, peer: Peer, cause: Cause) -> None:
        """Take one in."""
        self._counts[cause] += 1
        self._last[cause] = peer

    def due(self, now: float) -> tuple[EndedCount, ...]:
        """Return what is to be said now, and take it for said."""
        due = [each for each in self._counts if now - self._said.get(each, -SAID_SECONDS) >= SAID_SECONDS]
        self._said |= dict.fromkeys(due, now)
        return tuple(EndedCount(each, self._counts.pop(each), self._last.pop(each)) for each in due)
