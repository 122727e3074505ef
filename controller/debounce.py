"""When a wave begins: the first change after quiet at once, a burst when it pauses or has waited enough."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """How changes are gathered, in seconds.

    `quiet` without a change ends a burst; no change waits longer than `longest`.
    """

    quiet: float = 0.1
    longest: float = 1.0


@dataclass(frozen=True, slots=True)
class Pending:
    """Changes that no wave has taken up: when the first and the last of them came, and the last wave began.

    All moments are of one monotonic clock. `wave` is None before the first wave.
    """

    first: float
    last: float
    wave: float | None = None


def begin_at(pending: Pending, pace: Pace) -> float:
    """Return the moment at which the next wave should begin; it may lie in the past.

    A change that comes at least `quiet` after the last wave began goes at once. One that comes sooner is
    part of a burst: it waits until there was no change for `quiet`, but never longer than `longest`.
    """
    if pending.wave is None or pending.first - pending.wave >= pace.quiet:
        return pending.first
    return min(pending.last + pace.quiet, pending.first + pace.longest)


class Changes:
    """Gathers changes for the task that makes waves; the clock's readings are arguments."""

    __slots__ = ("_first", "_last", "_wave")

    def __init__(self) -> None:
        self._first: float | None = None
        self._last = 0.0
        self._wave: float | None = None

    def note(self, now: float) -> None:
        """Note a change."""
        if self._first is None:
            self._first = now
        self._last = now

    def due(self, pace: Pace) -> float | None:
        """Return when a wave should begin, or None while there is nothing to do."""
        if self._first is None:
            return None
        return begin_at(Pending(self._first, self._last, self._wave), pace)

    def take(self, now: float) -> float:
        """Begin a wave with all that was noted; return how long the first change waited, in seconds."""
        waited = 0.0 if self._first is None else now - self._first
        self._first, self._wave = None, now
        return waited
