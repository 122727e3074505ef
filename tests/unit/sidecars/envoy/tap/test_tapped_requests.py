"""Tests of requests from Envoy's access log service as values."""

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName
from meshwright.mesh.tap import TappedRequest
from meshwright.sidecars.envoy.tap.tapped_requests import MOST_CHARACTERS, requests
from protos.envoy.config.core.v3 import address_pb2, base_pb2
from protos.envoy.data.accesslog.v3 import accesslog_pb2
from protos.envoy.service.accesslog.v3 import als_pb2
from xds.protocol.wire import WireError

AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
NOTHING = TappedRequest(
    at=datetime(1970, 1, 1, tzinfo=UTC),
    caller=None,
    address="",
    port=Port(0),
    method="",
    authority="",
    path="",
    status=0,
    grpc_status=None,
    flags=(),
    details="",
    policy="",
    seconds=0.0,
    received_bytes=0,
    sent_bytes=0,
)


def _message(*entries: accesslog_pb2.HTTPAccessLogEntry) -> bytes:
    logs_message = als_pb2.StreamAccessLogsMessage()
    logs_message.http_logs.log_entry.extend(entries)
    return logs_message.SerializeToString()


def _entry() -> accesslog_pb2.HTTPAccessLogEntry:
    entry = accesslog_pb2.HTTPAccessLogEntry()
    common = entry.common_properties
    common.start_time.FromDatetime(AT)
    common.duration.FromTimedelta(timedelta(milliseconds=12))
    common.downstream_direct_remote_address.socket_address.address = "10.0.0.7"
    common.downstream_local_address.CopyFrom(_socket("127.0.0.1", 8080))
    name = common.tls_properties.peer_certificate_properties.subject_alt_name.add()
    name.uri = "spiffe://cluster.local/ns/shop/sa/alice"
    common.response_flags.upstream_connection_failure = True
    common.response_flags.rate_limited = True
    noted = common.metadata.filter_metadata["envoy.filters.http.rbac"]
    noted["enforced_effective_policy_id"] = "shop/books"
    noted["tap_shadow_engine_result"] = "allowed"
    entry.request.request_method = base_pb2.GET
    entry.request.authority = "shop.shop"
    entry.request.path = "/books?token=secret"
    entry.request.request_headers["authorization"] = "secret"
    entry.request.request_body_bytes = 11
    entry.response.response_code.value = 503
    entry.response.response_code_details = "upstream_reset"
    entry.response.response_body_bytes = 5
    entry.response.response_trailers["grpc-status"] = "14"
    return entry


def _socket(address: str, port: int) -> address_pb2.Address:
    return address_pb2.Address(socket_address=address_pb2.SocketAddress(address=address, port_value=port))


def test_log_entry_gives_every_field_without_query_and_headers() -> None:
    """The query and the headers may hold secrets, so no part of them is kept."""
    (tapped_request,) = requests(_message(_entry()))
    assert tapped_request == TappedRequest(
        at=AT,
        caller=ServiceIdentity(Namespace("shop"), ServiceAccountName("alice")),
        address="10.0.0.7",
        port=Port(8080),
        method="GET",
        authority="shop.shop",
        path="/books",
        status=503,
        grpc_status=14,
        flags=("upstream_connection_failure", "rate_limited"),
        details="upstream_reset",
        policy="shop/books",
        seconds=0.012,
        received_bytes=11,
        sent_bytes=5,
    )
    assert "secret" not in repr(tapped_request)


def test_missing_fields_are_empty() -> None:
    """An empty entry gives an empty request; a message without entries or of TCP gives none."""
    assert requests(_message(accesslog_pb2.HTTPAccessLogEntry())) == [NOTHING]
    assert requests(b"") == []
    tcp = als_pb2.StreamAccessLogsMessage()
    tcp.tcp_logs.log_entry.add()
    assert requests(tcp.SerializeToString()) == []


@pytest.mark.parametrize("path", ["/a?b=secret", "/a#secret", "/a?x#secret", "/a#?secret"])
def test_path_has_neither_query_nor_fragment(path: str) -> None:
    """The path ends at the first `?` or `#`."""
    entry = _entry()
    entry.request.path = path
    assert requests(_message(entry))[0].path == "/a"


@pytest.mark.parametrize("said", ["", "-1", "x", "1234", "٣"])
def test_invalid_grpc_status_is_ignored(said: str) -> None:
    """A server may write any text into the trailer, and only a number is a status."""
    entry = _entry()
    entry.response.response_trailers["grpc-status"] = said
    assert requests(_message(entry))[0].grpc_status is None


def test_long_path_and_authority_are_truncated() -> None:
    """A client may send a path or a host as long as all headers together."""
    entry = _entry()
    entry.request.path, entry.request.authority = "/" * 9000, "h" * 9000
    (tapped_request,) = requests(_message(entry))
    assert (len(tapped_request.path), len(tapped_request.authority)) == (MOST_CHARACTERS, MOST_CHARACTERS)


def test_invalid_time_or_message_is_a_wire_error() -> None:
    """A time or duration out of range is refused like a message that cannot be parsed."""
    entry = _entry()
    entry.common_properties.start_time.seconds = 2**62
    with pytest.raises(WireError, match="start_time"):
        requests(_message(entry))
    entry = _entry()
    entry.common_properties.duration.seconds = -(2**62)
    with pytest.raises(WireError, match="duration"):
        requests(_message(entry))
    with pytest.raises(WireError, match="StreamAccessLogsMessage"):
        requests(b"\xff\xff\xff")


@given(st.binary(max_size=200))
def test_any_message_gives_requests_or_a_wire_error(message: bytes) -> None:
    """Random bytes raise no other exception."""
    with contextlib.suppress(WireError):
        assert all(isinstance(request, TappedRequest) for request in requests(message))
