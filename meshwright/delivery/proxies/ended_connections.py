"""Counts of proxy connections closed because of an exceeded limit, logged at intervals."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from xds.hooks import Cause, Peer

SAID_SECONDS: Final = 10.0
"""Minimum seconds between two log lines about one cause, because a flood must not fill the log."""


@dataclass(frozen=True, slots=True)
class EndedCount:
    """Number of connections closed for one cause; `last` is the peer of the most recent one."""

    cause: Cause
    count: int
    last: Peer


class EndedConnections:
    """Counts of closed connections not logged yet. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._counts: Counter[Cause] = Counter()
        self._last: dict[Cause, Peer] = {}
        self._logged_at: dict[Cause, float] = {}

    def note(self, peer: Peer, cause: Cause) -> None:
        """Count a connection to this peer, closed for this cause."""
        self._counts[cause] += 1
        self._last[cause] = peer

    def due(self, now: float) -> tuple[EndedCount, ...]:
        """Return the counts to be logged at the time `now`, and reset them."""
        due = [
            count for count in self._counts if now - self._logged_at.get(count, -SAID_SECONDS) >= SAID_SECONDS
        ]
        # Counts go on during the pause, and are logged together with the next line.
        self._logged_at |= dict.fromkeys(due, now)
        return tuple(EndedCount(cause, self._counts.pop(cause), self._last.pop(cause)) for cause in due)
