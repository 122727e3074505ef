"""Precedence of newer servers at a free leadership, so that an upgrade changes the leader only once.

During an upgrade all former servers end soon. One of them that led meanwhile would leave the leadership free
again. The precedence ends after SECONDS, because a newer server may be unable to lead.

A pure module.
"""

import re
from collections.abc import Iterable
from typing import Final

from meshwright.replicas.state import ReplicaState

SECONDS: Final = 5.0
"""Seconds that newer servers have to lead first."""

_FREE_AGAIN: Final = 30.0
"""Seconds without an offer after which the next one is about another free leadership."""

_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")


def has_newer(own: ReplicaState, others: Iterable[ReplicaState | None]) -> bool:
    """Return whether a ready server has a newer version than this one; unreadable versions do not count."""
    mine = _numbers(own.version)
    return any(
        state.is_ready and not state.is_stopping and mine < _numbers(state.version)
        for state in others
        if state is not None and mine
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for example (0, 9, 1) of `0.9.1.dev2`; empty without any."""
    found = _NUMBERS.match(version)
    return tuple(map(int, found[0].split("."))) if found else ()


class NewerFirst:
    """Offers of the leadership to this server. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._first = self._last = float("-inf")

    def declines(self, now: float, *, has_newer: bool) -> bool:
        """Return whether this server gives the leadership that it has just got to a newer server."""
        if not has_newer:
            return False
        if now - self._last > _FREE_AGAIN:
            self._first = now
        self._last = now
        return now - self._first < SECONDS
