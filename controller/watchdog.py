"""Who held the event loop, and for how long: told by the heartbeat, for metrics and the log."""

from collections.abc import Callable
from typing import Final

import structlog

from admin.metrics import Metrics

LOGGED_SECONDS: Final = 0.1

_log = structlog.get_logger("controller.watchdog")


class Watchdog:
    """Hears of every beat of the loop; `doing` says what the wave that is being made is at, or nothing."""

    def __init__(self, metrics: Metrics, doing: Callable[[], str]) -> None:
        self._metrics = metrics
        self._doing = doing

    def late(self, seconds: float) -> None:
        """Take note of how late a beat came."""
        self._metrics.loop_beat(seconds)
        if seconds > LOGGED_SECONDS:
            _log.warning("the event loop was held", seconds=round(seconds, 3), doing=self._doing())
