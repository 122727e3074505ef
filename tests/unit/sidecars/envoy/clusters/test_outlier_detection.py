"""What stands against endpoints that fail, whole, as Envoy is told it; and that each can be turned off."""

from datetime import timedelta

import pytest
from google.protobuf.json_format import MessageToDict

from meshwright.mesh.policies.resilience import Keepalive, OutlierDetection, Resilience, RetryOn, RetryPolicy
from meshwright.sidecars.envoy.clusters import outlier_detection as surviving
from meshwright.sidecars.envoy.features.retries import Retries
from protos.envoy.config.route.v3 import route_pb2


def retries(policy: RetryPolicy | None, *, to_mesh: bool = True) -> object:
    """Return the retry policy of the one virtual host."""
    routes = route_pb2.RouteConfiguration()
    routes.virtual_hosts.add(name="h")
    Retries(policy, to_mesh=to_mesh).to_routes(routes)
    return MessageToDict(routes)["virtualHosts"][0].get("retryPolicy")


def test_all_can_be_turned_off() -> None:
    """Zero is none; nothing of it is sent then."""
    off = Resilience.of(
        connect_seconds=5,
        retries=0,
        failures=0,
        server_errors=0,
        ejected_seconds=10,
        ejected_percent=50,
        silence_seconds=0,
        reuse_seconds=0,
    )
    assert off == Resilience(timedelta(seconds=5), None, None, None, None)
    assert MessageToDict(surviving.peers(off, None, as_called=False)) == {}
    assert retries(None) is None


def test_only_what_reached_nobody_is_tried_again() -> None:
    """No condition of Envoy's is among them that a request can meet which was sent whole or in part."""
    told = retries(RetryPolicy())
    assert isinstance(told, dict)
    assert told["retryOn"] == "connect-failure,refused-stream,reset-before-request,retriable-headers"
    assert told["retriableHeaders"] == [{"name": "x-meshwright-undelivered", "presentMatch": True}]
    assert told["numRetries"] == 2


def test_a_host_outside_is_not_believed() -> None:
    """Whoever is outside could say of what it has acted on that it has not been delivered."""
    told = retries(RetryPolicy(), to_mesh=False)
    assert isinstance(told, dict)
    assert told["retryOn"] == "connect-failure,refused-stream,reset-before-request"
    assert "retriableHeaders" not in told
    assert retries(RetryPolicy((RetryOn.CONNECT_FAILURE,), 1)) == told | {
        "retryOn": "connect-failure",
        "numRetries": 1,
    }


def test_server_errors_count_where_that_is_asked_for() -> None:
    """By default what an application answers is its own affair; who is called by address is never ejected."""
    asked = Resilience(outliers=OutlierDetection(server_errors=7))
    told = MessageToDict(surviving.peers(asked, None, as_called=False))["outlierDetection"]
    assert (told["consecutive5xx"], "enforcingConsecutive5xx" in told) == (7, False)
    default = MessageToDict(surviving.peers(Resilience(), None, as_called=False))["outlierDetection"]
    assert (default["enforcingConsecutive5xx"], default["maxEjectionPercent"]) == (0, 50)
    assert "outlierDetection" not in MessageToDict(surviving.peers(Resilience(), None, as_called=True))


@pytest.mark.parametrize(("failures", "said"), [(5, None), (3, 3)])
def test_what_envoy_counts_to_anyway_is_not_said(failures: int, said: int | None) -> None:
    """Five in a row, of either kind, is Envoy's own: it would stand in every cluster of every caller."""
    asked = Resilience(outliers=OutlierDetection(failures=failures))
    told = MessageToDict(surviving.peers(asked, None, as_called=False))["outlierDetection"]
    assert told.get("consecutiveGatewayFailure") == said
    assert told.get("consecutiveLocalOriginFailure") == said
    assert told["enforcingConsecutiveGatewayFailure"] == 100


def test_a_silent_peer_is_asked_twice_before_it_is_lost() -> None:
    """Idle connections by TCP's keep-alive; those with something under way by its user timeout."""
    told = MessageToDict(
        surviving.peers(Resilience(keepalive=Keepalive(timedelta(seconds=8))), None, as_called=True)
    )
    assert told == {
        "upstreamConnectionOptions": {
            "tcpKeepalive": {"keepaliveProbes": 2, "keepaliveTime": 4, "keepaliveInterval": 2}
        },
        "upstreamBindConfig": {"socketOptions": [{"level": "6", "name": "18", "intValue": "8000"}]},
    }
