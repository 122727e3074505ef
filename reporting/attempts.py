"""Writes that may fail: what is not allowed is said once, by name, and everything else goes on."""

import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from kube.errors import ApiError, KubeError, Reason
from kube.pacing import Pacing
from reporting.meters import Meter, What

_T = TypeVar("_T")

BARRED: Final = 300.0
"""After so many seconds what was refused is tried again: roles are edited, and objects are mended."""

PACING: Final = Pacing()

_REFUSED: Final = frozenset(
    {Reason.FORBIDDEN, Reason.INVALID, Reason.NOT_SERVED, Reason.REFUSED, Reason.TOO_LARGE}
)

_log = structlog.get_logger("reporting")


class NotWritten(Exception):
    """Something is not written now; `until` is when it may be tried again.

    `is_refused` where that concerns this kind of request alone.
    """

    def __init__(self, until: float, *, is_refused: bool = False) -> None:
        super().__init__(f"not before {until}")
        self.until, self.is_refused = until, is_refused


class Attempts:
    """Makes requests, counts them, and says which fail.

    What the API server refuses concerns that kind of request alone, which is barred for a while. Anything
    else is the server's own trouble, and nothing is asked of it until that has passed.
    """

    def __init__(
        self, meter: Meter, chance: Callable[[], float], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._meter, self._chance, self._now = meter, chance, now
        self._barred: dict[str, float] = {}
        self._said: dict[str, str] = {}
        self._failures, self._paused = 0, float("-inf")

    async def make(
        self, what: What, on: str, request: Callable[[], Awaitable[_T]], *, writes: bool = False
    ) -> _T:
        """Make a request of one kind, such as `create events`; what is written is counted.

        Raises NotWritten, and ApiError for an object that is not there, or is there already.
        """
        if (now := self._now()) < self._paused:
            raise NotWritten(self._paused)
        if now < (barred := self._barred.get(on, now)):
            raise NotWritten(barred, is_refused=True)
        try:
            found = await request()
        except KubeError as error:
            if error.reason in (Reason.NOT_FOUND, Reason.CONFLICT):
                raise
            raise self._failed(what, on, error) from error
        self._failures = 0
        self._said.pop(on, None)
        if writes:
            self._meter.reported(what)
        return found

    def _failed(self, what: What, on: str, error: KubeError) -> NotWritten:
        """Count a failure, say it if it is another than the last; return what it means."""
        self._meter.reported(what, error.reason.value)
        if self._said.get(on) != error.reason.value:
            self._said[on] = error.reason.value
            _log.warning("report not written", what=what.value, reason=error.reason.value, error=str(error))
        if error.reason in _REFUSED:
            self._barred[on] = self._now() + BARRED
            return NotWritten(self._barred[on], is_refused=True)
        self._failures += 1
        asked = error.retry_after if isinstance(error, ApiError) else None
        self._paused = self._now() + PACING.pause(self._failures, self._chance(), asked)
        return NotWritten(self._paused)
