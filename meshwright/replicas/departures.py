"""Recently ended servers, whose proxies are on the way to other servers."""

import time
from collections.abc import Callable
from typing import Final

from meshwright.records.contract import ReplicaId
from meshwright.replicas.membership import Membership

SETTLED_SECONDS: Final = 60.0
"""Seconds after which the proxies of an ended server are connected to others, and counted there."""


class Departures:
    """The time of the last end of another server. For the event loop of the membership."""

    def __init__(self, membership: Membership, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._membership, self._monotonic = membership, monotonic
        self._here = frozenset[ReplicaId]()
        # This server does not know which servers ended before it began.
        self._last = monotonic()
        membership.follow(self._note)

    @property
    def are_recent(self) -> bool:
        """Return whether a server has ended within SETTLED_SECONDS, or may have."""
        return self._monotonic() < self._last + SETTLED_SECONDS

    def _note(self) -> None:
        here = frozenset(self._membership.states)
        if self._here - here:
            self._last = self._monotonic()
        self._here = here
