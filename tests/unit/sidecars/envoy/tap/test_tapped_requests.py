"""What Envoy's access log service tells of a request, as a value."""

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
    said = als_pb2.StreamAccessLogsMessage()
    said.http_logs.log_entry.extend(entries)
    return said.SerializeToString()


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


def test_a_request_is_told_whole() -> None:
    """But for its query and its headers, of which nothing is kept."""
    (found,) = requests(_message(_entry()))
    assert found == TappedRequest(
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
    assert "secret" not in repr(found)


def test_what_is_not_said_is_empty() -> None:
    """An entry with nothing in it, one of a connection, a message of nothing."""
    assert requests(_message(accesslog_pb2.HTTPAccessLogEntry())) == [NOTHING]
    assert requests(b"") == []
    tcp = als_pb2.StreamAccessLogsMessage()
    tcp.tcp_logs.log_entry.add()
    assert requests(tcp.SerializeToString()) == []


@pytest.mark.parametrize("path", ["/a?b=secret", "/a#secret", "/a?x#secret", "/a#?secret"])
def test_a_path_has_neither_query_nor_fragment(path: str) -> None:
    """Whichever comes first."""
    entry = _entry()
    entry.request.path = path
    assert requests(_message(entry))[0].path == "/a"


@pytest.mark.parametrize("said", ["", "-1", "x", "1234", "٣"])
def test_a_status_of_grpc_is_a_number(said: str) -> None:
    """What else a server writes there is none."""
    entry = _entry()
    entry.response.response_trailers["grpc-status"] = said
    assert requests(_message(entry))[0].grpc_status is None


def test_what_callers_write_is_cut() -> None:
    """A path and a host may be as long as all headers."""
    entry = _entry()
    entry.request.path, entry.request.authority = "/" * 9000, "h" * 9000
    (found,) = requests(_message(entry))
    assert (len(found.path), len(found.authority)) == (MOST_CHARACTERS, MOST_CHARACTERS)


def test_a_moment_that_is_none_is_refused() -> None:
    """As what is no message at all."""
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
def test_whatever_comes_is_a_request_or_refused(message: bytes) -> None:
    """Nothing else is raised."""
    with contextlib.suppress(WireError):
        assert all(isinstance(each, TappedRequest) for each in requests(message))
