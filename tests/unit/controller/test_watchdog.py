"""A loop that was held is said, with what it was at; every beat is counted."""

import structlog

from admin.metrics import Metrics
from controller.watchdog import Watchdog


def test_only_a_loop_that_was_held_is_said() -> None:
    """The log has what took more than a tenth of a second, the histogram everything."""
    metrics = Metrics()
    watchdog = Watchdog(metrics, lambda: "publishing")
    with structlog.testing.capture_logs() as said:
        for late in (0.0, 0.1, 0.1234):
            watchdog.late(late)
    assert said == [
        {
            "event": "the event loop was held",
            "log_level": "warning",
            "seconds": 0.123,
            "doing": "publishing",
        }
    ]
    text = metrics.text()
    assert b"meshwright_event_loop_beat_seconds_count 3.0" in text
    assert b'meshwright_event_loop_beat_seconds_bucket{le="0.1"} 2.0' in text
