"""Tests of the watchdog of the event loop: logged and counted delays."""

import structlog

from meshwright.admin.metrics.registry import Metrics
from meshwright.admin.readers import LateMoment
from meshwright.controller.process.watchdog import NOTED_SECONDS, REMEMBERED, Watchdog
from tests.meshes import values as a


def test_only_delays_over_a_tenth_of_a_second_are_logged() -> None:
    """The log has delays over 0.1 s with the current activity; the histogram has all of them."""
    metrics = Metrics()
    watchdog = Watchdog(metrics, lambda: "publishing", lambda: a.EPOCH)
    with structlog.testing.capture_logs() as answer:
        for late in (0.0, 0.1, 0.1234):
            watchdog.late(late)
    assert answer == [
        {
            "event": "event loop blocked",
            "log_level": "warning",
            "seconds": 0.123,
            "doing": "publishing",
        }
    ]
    text = metrics.text()
    assert b"meshwright_event_loop_beat_seconds_count 3.0" in text
    assert b'meshwright_event_loop_beat_seconds_bucket{le="0.1"} 2.0' in text
    assert watchdog.moments() == tuple(LateMoment(a.EPOCH, late, "publishing") for late in (0.1234, 0.1))


def test_only_the_last_delays_are_remembered() -> None:
    """The newest `REMEMBERED` delays are kept, newest first, without heartbeats that were in time."""
    watchdog = Watchdog(Metrics(), lambda: "", lambda: a.EPOCH)
    for number in range(REMEMBERED + 3):
        watchdog.late(number + 1.0)
        watchdog.late(NOTED_SECONDS)
    assert [moment.seconds for moment in watchdog.moments()] == [
        float(n + 1) for n in reversed(range(3, REMEMBERED + 3))
    ]
