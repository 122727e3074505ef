"""Writes that may fail: what is not allowed is said once an hour, by name, and everything else goes on.

A budget says how much may be written: so much in a minute, and no more at once. A meter counts the
writes, for metrics.
"""

import enum
import time
from collections.abc import Awaitable, Callable
from itertools import takewhile
from typing import Final, Protocol, TypeVar

import structlog

from meshwright.kube.errors import ApiError, KubeError, Reason
from meshwright.kube.reflector.pacing import Pacing

_T = TypeVar("_T")

BARRED: Final = 300.0
"""After so many seconds what was refused is tried again: roles are edited, and objects are mended."""

FIRST: Final = 5.0
"""After so many seconds what we may not do is tried again first, then less and less often, after BARRED in
the end: an API server that has just begun refuses what it will allow once it has read its roles."""

SAID: Final = 3600.0
"""After so many seconds what still fails is said again."""

PACING: Final = Pacing()

_Place = tuple[str, ...]
_Barred = tuple[str, _Place]
_Bar = tuple[float, int]
"""Until when something is barred, and for how many times in a row."""
_DEPTH: Final = 2
"""Of a place that is one object: its namespace, and itself."""

_REFUSED: Final = frozenset(
    {Reason.FORBIDDEN, Reason.INVALID, Reason.NOT_SERVED, Reason.REFUSED, Reason.TOO_LARGE}
)

_log = structlog.get_logger("reporting")


class WrittenKind(enum.StrEnum):
    """Kind of a write."""

    STATUS = "status"
    EVENT = "event"


class Meter(Protocol):
    """Counts; must return at once and not raise."""

    def reported(self, what: WrittenKind, failed: str = "") -> None:
        """Count a write, or one that failed, and why in a word."""

    def reporting(self, *, leads: bool) -> None:
        """Note whether this server is the one that writes."""


class WritePostponed(Exception):
    """Something is not written now; `until` is when it may be tried again.

    `is_refused` where that concerns this kind of request alone.
    """

    def __init__(self, until: float, *, is_refused: bool = False) -> None:
        super().__init__(f"not before {until}")
        self.until, self.is_refused = until, is_refused


class Attempts:
    """Makes requests, counts them, and says which fail.

    What the API server refuses is barred for a while: one object where that is at fault, requests of a kind
    in one namespace where we may not make them there, else requests of that kind: these for longer and
    longer. Anything else is the server's own trouble, and nothing is asked of it until that has passed.
    """

    def __init__(
        self, meter: Meter, chance: Callable[[], float], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._meter, self._chance, self._now = meter, chance, now
        self._barred: dict[_Barred, _Bar] = {}  # those first that began first
        self._said: dict[tuple[str, Reason], tuple[_Place, float]] = {}
        self._failures, self._paused = 0, float("-inf")

    async def make(
        self, what: WrittenKind, on: str, request: Callable[[], Awaitable[_T]], *at: str, writes: bool = False
    ) -> _T:
        """Make a request of one kind, such as `create events`; what is written is counted.

        `at` is the namespace, and in it the object that it is about. Raises WritePostponed, and ApiError for
        an object that is not there, or is there already.
        """
        if (now := self._now()) < self._paused:
            raise WritePostponed(self._paused)
        places = [(on, at[:depth]) for depth in range(len(at) + 1)]
        barred = max(self._barred[place][0] if place in self._barred else now for place in places)
        if now < barred:
            raise WritePostponed(barred, is_refused=True)
        try:
            found = await request()
        except KubeError as error:
            if error.reason in (Reason.NOT_FOUND, Reason.CONFLICT) and not _is_of_one(error):
                raise
            raise self._failed(what, on, at, error) from error
        self._failures = 0
        for each in places:
            self._barred.pop(each, None)
        for said in [each for each in self._said if each[0] == on]:
            if (place := self._said[said][0]) == at[: len(place)]:
                del self._said[said]
        if writes:
            self._meter.reported(what)
        return found

    def _failed(self, what: WrittenKind, on: str, at: _Place, error: KubeError) -> WritePostponed:
        """Count a failure, and say it; return what it means."""
        self._meter.reported(what, error.reason.value)
        is_of_one = _is_of_one(error) and len(at) == _DEPTH
        if not is_of_one and error.reason not in _REFUSED:
            self._say(what, on, (), error)
            self._failures += 1
            asked = error.retry_after if isinstance(error, ApiError) else None
            self._paused = self._now() + PACING.pause(self._failures, self._chance(), asked)
            return WritePostponed(self._paused)
        place = at if is_of_one else at[:1] if error.reason is Reason.FORBIDDEN else ()
        self._say(what, on, place, error)
        return WritePostponed(self._bar((on, place), BARRED if is_of_one else FIRST), is_refused=True)

    def _bar(self, barred: _Barred, first: float) -> float:
        """Bar something from now on, and forget what has long not been; return until when it is."""
        now = self._now()
        _, times = self._barred.pop(barred, (now, 0))
        for each in [*takewhile(lambda each: self._barred[each][0] + BARRED <= now, self._barred)]:
            del self._barred[each]
        until = now + min(first * 2.0 ** min(times, 16), BARRED)
        self._barred[barred] = until, times + 1
        return until

    def _say(self, what: WrittenKind, on: str, place: _Place, error: KubeError) -> None:
        """Say a failure, unless the like of it was said within the hour, and has not gone well since."""
        reason, now = error.reason, self._now()
        said = self._said.get((on, reason))
        if said is None or now >= said[1] + SAID:
            self._said[on, reason] = place, now
            of = {"of": place[-1]} if len(place) == _DEPTH else {}
            _log.warning(
                "status report not written", what=what.value, reason=reason.value, error=str(error), **of
            )


def _is_of_one(error: KubeError) -> bool:
    return error.reason is Reason.TOO_LARGE or (isinstance(error, ApiError) and error.is_of_one)


class Budget:
    """Writes that may be made at `per_minute`; those not made are saved up, as many as `at_once`."""

    def __init__(self, per_minute: float, at_once: float) -> None:
        self._rate, self._most = per_minute / 60, at_once
        self._left, self._at = at_once, float("-inf")

    def take(self, now: float) -> None:
        """Take one; `now` is of a clock that only goes forward. Raises WritePostponed while there is none."""
        if self._at > float("-inf"):
            self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            raise WritePostponed(
                now + (max(1.0, self._most / 6) - self._left) / self._rate
            )  # for some at once
        self._left -= 1
