"""Tests of the state of a proxy over all servers of a mesh."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from meshwright.admin.replicas.statuses import SHARED_AFTER, PlacedStatus, placed
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
NAME = ProxyName.parse("uuid-1.store.shop")
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def status(state: ProxyState, ago: timedelta, address: str = "", *, known: bool = True) -> ProxyStatus:
    """Return the status of a proxy."""
    return ProxyStatus(NAME, state, address, NOW - ago, known)


EXPECTED = status(ProxyState.EXPECTED, 2 * HOUR)
CONNECTED = status(ProxyState.CONNECTED, MINUTE, "ipv4:10.0.0.1:5")
DISCONNECTED = status(ProxyState.DISCONNECTED, MINUTE, "ipv4:10.0.0.1:4")
ENDED = replace(DISCONNECTED, state=ProxyState.ENDED, known=False)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param({"a": [EXPECTED], "b": []}, PlacedStatus(EXPECTED, None), id="never connected"),
        pytest.param(
            {"a": [EXPECTED], "b": [CONNECTED]}, PlacedStatus(CONNECTED, "b"), id="at another server"
        ),
        pytest.param({"a": [DISCONNECTED], "b": [CONNECTED]}, PlacedStatus(CONNECTED, "b"), id="moved on"),
        pytest.param({"a": [CONNECTED], "b": [DISCONNECTED]}, PlacedStatus(CONNECTED, "a"), id="moved here"),
        pytest.param(
            {"a": [status(ProxyState.DISCONNECTED, HOUR)], "b": [DISCONNECTED]},
            PlacedStatus(DISCONNECTED, "b"),
            id="disconnected everywhere: the last server counts",
        ),
        pytest.param(
            {"a": [EXPECTED], "b": [ENDED]},
            PlacedStatus(replace(DISCONNECTED, known=True), "b"),
            id="the own view of the workloads counts",
        ),
        pytest.param(
            {"a": [status(ProxyState.ENDED, HOUR, known=False)], "b": [DISCONNECTED]},
            PlacedStatus(ENDED, "b"),
            id="the workload is gone",
        ),
        pytest.param({"a": [], "b": [ENDED]}, PlacedStatus(ENDED, "b"), id="unknown here"),
        pytest.param(
            {"a": [CONNECTED], "b": [status(ProxyState.CONNECTED, timedelta(), "ipv4:10.0.0.1:6")]},
            PlacedStatus(status(ProxyState.CONNECTED, timedelta(), "ipv4:10.0.0.1:6"), "b"),
            id="at both while it moves",
        ),
        pytest.param(
            {
                "a": [status(ProxyState.CONNECTED, SHARED_AFTER, "ipv4:10.0.0.1:5")],
                "b": [status(ProxyState.CONNECTED, HOUR, "ipv4:10.0.0.2:6")],
            },
            PlacedStatus(
                replace(
                    status(ProxyState.CONNECTED, SHARED_AFTER, "ipv4:10.0.0.1:5"),
                    peers=("ipv4:10.0.0.1:5", "ipv4:10.0.0.2:6"),
                ),
                "a",
            ),
            id="two proxies with one identity",
        ),
    ],
)
def test_one_status_for_each_proxy(statuses: dict[str, list[ProxyStatus]], expected: PlacedStatus) -> None:
    """A proxy is disconnected only if no server has it."""
    assert placed("a", statuses, NOW) == (expected,)


def test_proxies_are_sorted_by_name() -> None:
    """The order does not depend on the servers."""
    others = [replace(CONNECTED, name=ProxyName.parse(f"{uuid}.store.shop")) for uuid in ("c", "a")]
    result = placed("a", {"b": others, "a": [EXPECTED]}, NOW)
    assert [str(item.status.name) for item in result] == ["a.store.shop", "c.store.shop", str(NAME)]
