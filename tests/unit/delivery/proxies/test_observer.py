"""Tests of the observer: events of the ADS server reach the registry, metrics and log."""

import contextlib
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from catalog.store.settings import EndpointAdmission
from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery.history.history import PushHistory
from meshwright.delivery.proxies.journal import Journal
from meshwright.delivery.proxies.observer import MeshObserver
from meshwright.delivery.proxies.readiness import EndpointReadiness
from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.mesh.objects import ObjectKey
from xds.budget import Excess, LimitKind
from xds.cache import NodeKey, SnapshotCache
from xds.hooks import Cause, Peer, StreamEnd
from xds.protocol.resources.resource import CLUSTER, LISTENER, Version
from xds.protocol.wire import Node, Nonce, Rejection, Response
from xds.stream_status import Variant

NODE = NodeKey("a.store.shop")
PEER = Peer(None, "ipv4:1.2.3.4:5")


class Silent:
    """A handler of answers that decides nothing."""

    def opened(self, node: NodeKey) -> None:
        """Do nothing."""

    def decides(self, node: NodeKey) -> bool:
        """Return False: no decision follows from an answer."""
        return False

    def answered(
        self,
        node: NodeKey,
        response: Response,
        rejection: Rejection | None,
        changed: frozenset[ObjectKey],
        stream: int | None,
    ) -> None:
        """Do nothing."""

    def has_record(self, stream: int) -> bool:
        """Return False: nothing is withheld from any stream."""
        return False

    def takes_calls(self, node: NodeKey, response: Response) -> bool:
        """Return True: every listener counts as accepted."""
        return True

    def closed(self, stream: int) -> None:
        """Do nothing."""


def _observer() -> tuple[MeshObserver, ProxyRegistry, Metrics]:
    metrics = Metrics()
    registry = ProxyRegistry(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    readiness = EndpointReadiness((), EndpointAdmission.READY)
    history = PushHistory(SnapshotCache(), registry.find)
    journal = Journal(history, Quarantine(lambda _: None), metrics)
    return MeshObserver(registry, metrics, history, journal, readiness, Silent()), registry, metrics


def test_streams_are_counted_by_variant_as_they_open_and_close() -> None:
    """There is a count of open streams and a total of opened ones."""
    observer, registry, metrics = _observer()
    observer.opened(NODE, PEER, Variant.DELTA)
    other = Peer(None, "ipv4:1.2.3.4:6")
    observer.opened(NODE, other, Variant.SOTW)
    assert observer.streams == {"delta": 1, "sotw": 1}
    observer.closed(NODE, PEER, StreamEnd.CLIENT, "")
    assert observer.streams == {"delta": 0, "sotw": 1}
    observer.closed(NODE, other, StreamEnd.SHUTDOWN, "")
    assert observer.streams == {"delta": 0, "sotw": 0}
    assert registry.counts()["ended"] == 1
    assert b'meshwright_xds_streams_opened_total{protocol="delta"} 1.0' in metrics.text()


def test_exceeded_limit_is_counted_and_logged_with_value_and_limit() -> None:
    """The line names the limit and the proxy, if the proxy is known by then."""
    observer, _, metrics = _observer()
    with capture_logs() as answer:
        observer.exceeded(NODE, PEER, Excess(LimitKind.NAMES, 11, 10))
        observer.exceeded(None, PEER, Excess(LimitKind.STREAMS, 9, 8))

    line = {"event": "client exceeded a limit", "log_level": "warning", "peer": "ipv4:1.2.3.4:5"}
    assert answer == [
        {**line, "proxy": NODE, "bound": "names", "value": 11, "limit": 10},
        {**line, "proxy": None, "bound": "streams", "value": 9, "limit": 8},
    ]
    assert b'meshwright_xds_budget_exceeded_total{bound="names"} 1.0' in metrics.text()


@pytest.mark.parametrize(
    ("agent", "level", "suspect", "hinted"),
    [
        ("gRPC Go 1.70.0", "warning", True, True),
        ("envoy 1.40.0", "info", False, False),
        ("", "warning", True, False),
    ],
)
def test_large_response_is_logged_once_by_proxy_and_type_until_answered(
    agent: str, level: str, suspect: bool, hinted: bool
) -> None:
    """A client that cannot receive the response reconnects, and would cause the same line each time."""
    observer, registry, metrics = _observer()
    node, size = Node("a", user_agent=agent), 5_000_000
    responses = [Response(CLUSTER, Version("1"), Nonce(str(n))) for n in range(3)]
    with capture_logs() as answer:
        for response in responses:
            observer.large(NODE, node, response, size)
            observer.sent(NODE, response, size)
        observer.large(NODE, node, Response(LISTENER, Version("1"), Nonce("9")), size)

    large = [item for item in answer if item["event"] == "large response sent"]
    assert [(item["log_level"], item["type"], item["bytes"]) for item in large] == [
        (level, "cluster", size),
        (level, "listener", size),
    ]
    assert [("max_receive_message_length" in item.get("hint", "")) for item in large] == [hinted] * 2
    assert b'meshwright_xds_large_responses_total{type="cluster"} 3.0' in metrics.text()
    suspects = [
        large_response.type_url
        for large_response in registry.proxy(NODE).large.unanswered()
        if large_response.is_suspect
    ]
    assert suspects == ([CLUSTER, LISTENER] if suspect else [])
    observer.answered(NODE, responses[0], None)
    assert [large_response.type_url for large_response in registry.proxy(NODE).large.unanswered()] == [
        CLUSTER,
        LISTENER,
    ]
    observer.answered(NODE, responses[2], None)
    assert [large_response.type_url for large_response in registry.proxy(NODE).large.unanswered()] == [
        LISTENER
    ]
    observer.sent(NODE, Response(LISTENER, Version("2"), Nonce("10")), 100)
    assert registry.proxy(NODE).large.unanswered() == ()


def test_refused_streams_are_counted_by_reason() -> None:
    """A refusal may precede the opening of a stream, or end a live stream."""
    observer, _, metrics = _observer()
    observer.refused(PEER, "revoked")
    observer.opened(NODE, PEER, Variant.DELTA)
    observer.closed(NODE, PEER, StreamEnd.REFUSED, "revoked")
    assert b'meshwright_xds_streams_refused_total{reason="revoked"} 2.0' in metrics.text()


def test_own_connections_are_not_counted_as_handshakes() -> None:
    """The handshake may be seen during or after the own connection; a failed one hides no other."""
    observer, _, metrics = _observer()
    with observer.own_connection():
        observer.handshake()
    with observer.own_connection():
        pass
    with contextlib.suppress(OSError), observer.own_connection():
        raise OSError
    assert b"meshwright_xds_handshakes_total 0.0" in metrics.text()
    for _ in range(3):
        observer.handshake()
    assert b"meshwright_xds_handshakes_total 2.0" in metrics.text()


def test_responses_and_answers_are_counted_by_type() -> None:
    """A response, an ACK and a NACK have separate counters."""
    observer, _, metrics = _observer()
    observer.handshake()
    observer.sent(NODE, Response(CLUSTER, Version("1"), Nonce("1")), 10)
    observer.answered(NODE, Response(CLUSTER, Version("1"), Nonce("1")), None)
    observer.answered(NODE, Response(LISTENER, Version("1"), Nonce("2")), Rejection(3, "bad"))
    text = metrics.text()
    for line in (
        b"meshwright_xds_handshakes_total 1.0",
        b'meshwright_xds_responses_total{type="cluster"} 1.0',
        b'meshwright_xds_acks_total{type="cluster"} 1.0',
        b'meshwright_xds_nacks_total{type="listener"} 1.0',
    ):
        assert line in text


def test_ended_connections_are_counted_singly_and_logged_together() -> None:
    """The line has the last address; the name of an unreadable certificate is empty."""
    observer, _, metrics = _observer()
    for port in (1, 2):
        observer.ended(Peer(b"no certificate", f"ipv4:1.2.3.4:{port}"), Cause.CALLS)
    with capture_logs() as lines:
        observer.report()
        observer.report()
    assert b'meshwright_xds_connections_ended_total{cause="too-many-calls"} 2.0' in metrics.text()
    answer = {"cause": "too-many-calls", "count": 2, "last": "ipv4:1.2.3.4:2", "certificate": ""}
    assert lines == [{"event": "xDS connections closed by the server", "log_level": "warning", **answer}]
