"""Attempts to write to the Kubernetes API, with limits, counts and a log line per kind of failure and hour.

A request refused by the API server is suspended alone; other requests continue. A budget limits the writes
per minute and the writes in one burst. A meter counts the writes for metrics.
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
"""Seconds after which a refused request is tried again, because roles and objects may have changed."""

FIRST: Final = 5.0
"""Seconds until the first retry of a forbidden request. The pause doubles with each failure, up to BARRED.

The first retry is early because a newly started API server refuses requests until its roles are loaded.
"""

SAID: Final = 3600.0
"""Seconds after which a continuing failure is logged again."""

PACING: Final = Pacing()

_Place = tuple[str, ...]
_Barred = tuple[str, _Place]
_Bar = tuple[float, int]
"""End of a suspension, and how many times in a row the request was suspended."""
_DEPTH: Final = 2
"""Length of a place that is one object: its namespace and its name."""

_REFUSED: Final = frozenset(
    {Reason.FORBIDDEN, Reason.INVALID, Reason.NOT_SERVED, Reason.REFUSED, Reason.TOO_LARGE}
)

_log = structlog.get_logger("reporting")


class WrittenKind(enum.StrEnum):
    """Kind of a written report about an object: status or Event."""

    STATUS = "status"
    EVENT = "event"


class Meter(Protocol):
    """Counter of writes of status and Events. Its methods must return at once and must not raise."""

    def reported(self, written_kind: WrittenKind, failed: str = "") -> None:
        """Count a write of status or Event. `failed` is the reason of a failure in one word, or empty."""

    def reporting(self, *, leads: bool) -> None:
        """Record whether this server holds the Lease and writes status and Events."""


class WritePostponed(Exception):
    """The write is postponed until `until`, a monotonic time in seconds.

    `is_refused` is True if only this kind of request is suspended.
    """

    def __init__(self, until: float, *, is_refused: bool = False) -> None:
        super().__init__(f"postponed until {until}")
        self.until, self.is_refused = until, is_refused


class Attempts:
    """Makes requests to the API server, counts them and logs failures.

    A refused request suspends as little as possible: an invalid object alone, one kind of request in one
    namespace if RBAC forbids the request there, otherwise the kind of request. The last two are suspended
    longer with each failure. Any other failure is taken as an outage of the API server and pauses all
    requests.
    """

    def __init__(
        self, meter: Meter, chance: Callable[[], float], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._meter, self._chance, self._now = meter, chance, now
        self._barred: dict[_Barred, _Bar] = {}  # in the order of their beginnings
        self._logged_failures: dict[tuple[str, Reason], tuple[_Place, float]] = {}
        self._failures, self._paused = 0, float("-inf")

    async def make(
        self,
        written_kind: WrittenKind,
        on: str,
        request: Callable[[], Awaitable[_T]],
        *at: str,
        writes: bool = False,
    ) -> _T:
        """Make a request of the kind `on`, for example `create events`, and count it if `writes` is True.

        `at` is the namespace and then the object. Raises WritePostponed, and ApiError for an object that does
        not exist or exists already.
        """
        if (now := self._now()) < self._paused:
            raise WritePostponed(self._paused)
        places = [(on, at[:depth]) for depth in range(len(at) + 1)]
        barred = max(self._barred[place][0] if place in self._barred else now for place in places)
        if now < barred:
            raise WritePostponed(barred, is_refused=True)
        try:
            result = await request()
        except KubeError as error:
            if error.reason in (Reason.NOT_FOUND, Reason.CONFLICT) and not _is_of_one(error):
                raise
            raise self._failed(written_kind, on, at, error) from error
        self._failures = 0
        for item in places:
            self._barred.pop(item, None)
        # A success ends the failure at this place, so that the next failure is logged at once.
        for lines in [item for item in self._logged_failures if item[0] == on]:
            if (place := self._logged_failures[lines][0]) == at[: len(place)]:
                del self._logged_failures[lines]
        if writes:
            self._meter.reported(written_kind)
        return result

    def _failed(self, written_kind: WrittenKind, on: str, at: _Place, error: KubeError) -> WritePostponed:
        """Count and log a failed request; return the exception with the time of the next attempt."""
        self._meter.reported(written_kind, error.reason.value)
        is_of_one = _is_of_one(error) and len(at) == _DEPTH
        if not is_of_one and error.reason not in _REFUSED:
            self._log_failure(written_kind, on, (), error)
            self._failures += 1
            asked = error.retry_after if isinstance(error, ApiError) else None
            self._paused = self._now() + PACING.pause(self._failures, self._chance(), asked)
            return WritePostponed(self._paused)
        place = at if is_of_one else at[:1] if error.reason is Reason.FORBIDDEN else ()
        self._log_failure(written_kind, on, place, error)
        return WritePostponed(self._bar((on, place), BARRED if is_of_one else FIRST), is_refused=True)

    def _bar(self, barred: _Barred, first: float) -> float:
        """Suspend a kind of request after a failure; return the end of the suspension."""
        now = self._now()
        _, times = self._barred.pop(barred, (now, 0))
        for item in [*takewhile(lambda item: self._barred[item][0] + BARRED <= now, self._barred)]:
            del self._barred[item]
        until = now + min(first * 2.0 ** min(times, 16), BARRED)
        self._barred[barred] = until, times + 1
        return until

    def _log_failure(self, written_kind: WrittenKind, on: str, place: _Place, error: KubeError) -> None:
        """Log a failure, unless the same failure was logged within SAID seconds without a success since."""
        reason, now = error.reason, self._now()
        logged = self._logged_failures.get((on, reason))
        if logged is None or now >= logged[1] + SAID:
            self._logged_failures[on, reason] = place, now
            of = {"of": place[-1]} if len(place) == _DEPTH else {}
            _log.warning(
                "status report not written",
                what=written_kind.value,
                reason=reason.value,
                error=str(error),
                **of,
            )


def _is_of_one(error: KubeError) -> bool:
    return error.reason is Reason.TOO_LARGE or (isinstance(error, ApiError) and error.is_of_one)


class Budget:
    """Budget of `per_minute` writes of status or Events. Unused writes are saved, up to `at_once`."""

    def __init__(self, per_minute: float, at_once: float) -> None:
        self._rate, self._most = per_minute / 60, at_once
        self._left, self._at = at_once, float("-inf")

    def take(self, now: float) -> None:
        """Take one write at `now` (monotonic seconds). Raises WritePostponed if the budget is empty."""
        if self._at > float("-inf"):
            self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            # Wait until a sixth of the budget is available again, so that writes go out in groups.
            raise WritePostponed(now + (max(1.0, self._most / 6) - self._left) / self._rate)
        self._left -= 1
