"""Tests of the judgements of a control plane's own metrics, and of reading these metrics."""

from datetime import timedelta

import pytest

from meshwright.admin.metrics.registry import Metrics
from meshwright.cli.checking.cluster.measurements import ServerMeasurements, measured
from meshwright.cli.checking.judgements import server_state as answered
from meshwright.cli.checking.judgements.check import Status

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ({}, Status.OK),
        ({"connected": 2, "expected": 0, "disconnected": 0}, Status.OK),
        ({"connected": 13, "expected": 0, "disconnected": 0, "ended": 6}, Status.OK),
        ({"connected": 2, "expected": 1}, Status.WARNING),
        ({"connected": 2, "expected": 1, "disconnected": 1}, Status.FAILED),
    ],
)
def test_missing_proxies_are_judged_by_their_state(found: dict[str, int], status: Status) -> None:
    """An expected proxy is a warning and a disconnected one a failure.

    The next step is a command that names the proxies.
    """
    check = answered.proxies(found, "home", "meshwright-0")
    assert check.status is status
    assert status is Status.OK or "`kubectl -n home exec meshwright-0 -- meshwright proxies`" in check.do


@pytest.mark.parametrize(
    ("running_out", "first", "status", "said"),
    [
        (0, {}, Status.OK, "no proxy holds one"),
        (0, {"service": DAY, "proxy": 2 * DAY}, Status.OK, "proxy ends in 2 d; the first of service "),
        (1, {"service": DAY}, Status.FAILED, "1 certificate of services cannot be renewed"),
        (0, {"proxy": -DAY, "service": DAY}, Status.FAILED, "one of proxy"),
    ],
)
def test_certificates_held_by_proxies_are_judged(
    running_out: int, first: dict[str, timedelta], status: Status, said: str
) -> None:
    """An expired certificate, or one that cannot be renewed, is a failure.

    The proxy of an expired one can no longer communicate.
    """
    check = answered.certificates(running_out, first, "home", "meshwright-0")
    assert (check.status, said in check.finding) == (status, True)


def test_measurements_are_read_by_the_server_s_metric_names() -> None:
    """The names are those of the server's metrics; a server that has just started has no expiry."""
    text = Metrics().text().decode()
    assert measured(text).first == {}
    for name in ("proxies", "certificates_running_out", "certificate_acknowledged_expiry_seconds"):
        assert f"# TYPE meshwright_{name} gauge" in text
    more = (
        'meshwright_proxies{state="connected"} 2.0',
        "meshwright_certificates_running_out 1.0",
        'meshwright_certificate_acknowledged_expiry_seconds{kind="proxy"} 60.0',
    )
    assert measured("\n".join((*more, ""))) == ServerMeasurements(
        {"connected": 2}, 1, {"proxy": timedelta(minutes=1)}
    )
