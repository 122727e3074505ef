"""Delays of the event loop, measured by the heartbeat: for metrics, the log and a page."""

from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from meshwright.admin.metrics.registry import Metrics
from meshwright.admin.readers import LateMoment

NOTED_SECONDS: Final = 0.02
"""Longest acceptable delay; longer ones are remembered."""
LOGGED_SECONDS: Final = 0.1
REMEMBERED: Final = 64

_log = structlog.get_logger("controller.process.watchdog")


class Watchdog:
    """Receiver of heartbeats, which remembers the last delays.

    `doing` returns the present step of a wave, or an empty text.
    """

    def __init__(self, metrics: Metrics, doing: Callable[[], str], clock: Callable[[], datetime]) -> None:
        self._metrics = metrics
        self._doing = doing
        self._clock = clock
        self._moments: deque[LateMoment] = deque(maxlen=REMEMBERED)

    def late(self, seconds: float) -> None:
        """Record the delay of a heartbeat."""
        self._metrics.loop_beat(seconds)
        if seconds <= NOTED_SECONDS:
            return
        # Read now: the wave that blocked the loop is usually still at the same step.
        doing = self._doing()
        self._moments.append(LateMoment(self._clock(), seconds, doing))
        if seconds > LOGGED_SECONDS:
            _log.warning("event loop blocked", seconds=round(seconds, 3), doing=doing)

    def moments(self) -> tuple[LateMoment, ...]:
        """Return the last noticeable delays of the event loop, newest first."""
        return tuple(reversed(self._moments))
