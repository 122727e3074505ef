"""Tests of resilience to failing endpoints: Envoy's fields, and how to turn each part off."""

from datetime import timedelta

import pytest
from google.protobuf.json_format import MessageToDict

from meshwright.mesh.policies.resilience import Keepalive, OutlierDetection, Resilience, RetryOn, RetryPolicy
from meshwright.sidecars.envoy.clusters import outlier_detection as surviving
from meshwright.sidecars.envoy.features.retries import Retries
from protos.envoy.config.route.v3 import route_pb2


def retries(policy: RetryPolicy | None, *, to_mesh: bool = True) -> object:
    """Return the retry policy of the only virtual host."""
    routes = route_pb2.RouteConfiguration()
    routes.virtual_hosts.add(name="h")
    Retries(policy, to_mesh=to_mesh).to_routes(routes)
    return MessageToDict(routes)["virtualHosts"][0].get("retryPolicy")


def test_zero_turns_every_part_of_resilience_off() -> None:
    """A part that is off has no field in the configuration."""
    off = Resilience.from_settings(
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


def test_only_undelivered_requests_are_retried() -> None:
    """Retries have no condition that a request can meet after it was sent in whole or in part."""
    answer = retries(RetryPolicy())
    assert isinstance(answer, dict)
    assert answer["retryOn"] == "connect-failure,refused-stream,reset-before-request,retriable-headers"
    assert answer["retriableHeaders"] == [{"name": "x-meshwright-undelivered", "presentMatch": True}]
    assert answer["numRetries"] == 2


def test_outside_host_cannot_ask_for_a_retry_by_header() -> None:
    """A host outside could claim that a request was undelivered after acting on it."""
    answer = retries(RetryPolicy(), to_mesh=False)
    assert isinstance(answer, dict)
    assert answer["retryOn"] == "connect-failure,refused-stream,reset-before-request"
    assert "retriableHeaders" not in answer
    assert retries(RetryPolicy((RetryOn.CONNECT_FAILURE,), 1)) == answer | {
        "retryOn": "connect-failure",
        "numRetries": 1,
    }


def test_server_errors_eject_endpoints_only_if_configured() -> None:
    """By default, the answers of an application do not matter.

    An endpoint that is called by its address is never ejected.
    """
    asked = Resilience(outliers=OutlierDetection(server_errors=7))
    answer = MessageToDict(surviving.peers(asked, None, as_called=False))["outlierDetection"]
    assert (answer["consecutive5xx"], "enforcingConsecutive5xx" in answer) == (7, False)
    default = MessageToDict(surviving.peers(Resilience(), None, as_called=False))["outlierDetection"]
    assert (default["enforcingConsecutive5xx"], default["maxEjectionPercent"]) == (0, 50)
    assert "outlierDetection" not in MessageToDict(surviving.peers(Resilience(), None, as_called=True))


@pytest.mark.parametrize(("failures", "said"), [(5, None), (3, 3)])
def test_envoys_default_count_of_failures_is_left_out(failures: int, said: int | None) -> None:
    """Five failures in a row are Envoy's default, and the field would be in every cluster of every caller."""
    asked = Resilience(outliers=OutlierDetection(failures=failures))
    answer = MessageToDict(surviving.peers(asked, None, as_called=False))["outlierDetection"]
    assert answer.get("consecutiveGatewayFailure") == said
    assert answer.get("consecutiveLocalOriginFailure") == said
    assert answer["enforcingConsecutiveGatewayFailure"] == 100


def test_silent_peer_is_probed_twice_before_its_connection_ends() -> None:
    """TCP keepalive ends idle connections, and the TCP user timeout ends those with unacknowledged data."""
    fields = MessageToDict(
        surviving.peers(Resilience(keepalive=Keepalive(timedelta(seconds=8))), None, as_called=True)
    )
    assert fields == {
        "upstreamConnectionOptions": {
            "tcpKeepalive": {"keepaliveProbes": 2, "keepaliveTime": 4, "keepaliveInterval": 2}
        },
        "upstreamBindConfig": {"socketOptions": [{"level": "6", "name": "18", "intValue": "8000"}]},
    }
