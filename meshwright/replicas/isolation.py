"""Judgement whether the store is away for one server alone, from the ages of the store's last answers.

A server whose store is away for all servers goes on, because its proxies are nowhere better off. If the store
answers other servers, its proxies are better off there, because this server misses changes of the others.

A pure module.
"""

from collections.abc import Iterable
from typing import Final

AWAY_SECONDS: Final = 20.0
"""Age of the last answer from which on the store counts as away. A slow store answers within 10 s."""

PATIENCE_SECONDS: Final = 300.0
"""Seconds for which a server that is alone without the store stays ready, from the last answer on."""

EVIDENCE_SECONDS: Final = 30.0
"""Seconds for which an answer of another server counts, because a single question may get lost."""


class Isolation:
    """The time for which the store has answered others, and not this server. Times are of a monotonic clock.

    Ages are in seconds; the age is None for a server that the store has never answered.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._seen: float | None = None

    def note(self, now: float, own: float | None, others: Iterable[float | None]) -> None:
        """Take the age at this server, and the ages that other servers have answered."""
        ages = tuple(others)
        if _is_here(own) or (ages and not any(map(_is_here, ages))):
            self._since = self._seen = None
        elif ages:
            self._seen = now
            if self._since is None:
                self._since = now - (own or 0.0)
        elif self._seen is not None and now > self._seen + EVIDENCE_SECONDS:
            self._since = self._seen = None

    def seconds(self, now: float) -> float:
        """Return the seconds since the store's last answer while this server is the only one without it."""
        return 0.0 if self._since is None else now - self._since

    def is_long(self, now: float) -> bool:
        """Return whether proxies should use the other servers by now."""
        return self.seconds(now) >= PATIENCE_SECONDS


def _is_here(age: float | None) -> bool:
    return age is not None and age < AWAY_SECONDS
