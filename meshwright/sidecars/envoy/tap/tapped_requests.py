"""Parser of access log entries into values; only the fields needed for a tap are read.

https://www.envoyproxy.io/docs/envoy/latest/api-v3/data/accesslog/v3/accesslog.proto
"""

import re
from collections.abc import Iterator
from datetime import UTC
from typing import Final

from google.protobuf.message import DecodeError

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName
from meshwright.mesh.tap import TappedRequest
from meshwright.sidecars.envoy.features.tap import GRPC_STATUS
from meshwright.sidecars.envoy.rules import rbac
from protos.envoy.config.core.v3 import address_pb2, base_pb2
from protos.envoy.data.accesslog.v3 import accesslog_pb2
from protos.envoy.service.accesslog.v3 import als_pb2
from xds.protocol.wire import WireError

MOST_CHARACTERS: Final = 1024
"""Characters kept of a text from a caller, because a path may be as long as the limit for all headers."""

_SPIFFE: Final = re.compile(r"spiffe://[^/]+/ns/(?P<namespace>[^/]+)/sa/(?P<account>[^/]+)")
_METHODS: Final = base_pb2.RequestMethod


def requests(message: bytes) -> list[TappedRequest]:
    """Return the requests of a StreamAccessLogsMessage; raise WireError if malformed."""
    try:
        logs_message = als_pb2.StreamAccessLogsMessage.FromString(message)
    except DecodeError as error:
        raise WireError("not a StreamAccessLogsMessage") from error
    try:
        return [_request(log_entry) for log_entry in logs_message.http_logs.log_entry]
    except (ValueError, OverflowError) as error:
        raise WireError("the start_time or duration of an entry is invalid") from error


def _request(entry: accesslog_pb2.HTTPAccessLogEntry) -> TappedRequest:
    common, asked, answered = entry.common_properties, entry.request, entry.response
    ended = common.duration if common.HasField("duration") else common.time_to_last_downstream_tx_byte
    return TappedRequest(
        at=common.start_time.ToDatetime(UTC),
        caller=_caller(common.tls_properties),
        address=common.downstream_direct_remote_address.socket_address.address,
        port=_port(common.downstream_local_address),
        method=_METHODS.Name(asked.request_method).removeprefix("METHOD_UNSPECIFIED"),
        authority=asked.authority[:MOST_CHARACTERS],
        path=re.split("[?#]", asked.path, maxsplit=1)[0][:MOST_CHARACTERS],
        status=answered.response_code.value,
        grpc_status=_grpc_status(answered.response_trailers.get(GRPC_STATUS, "")),
        flags=tuple(_flags(common.response_flags)),
        details=answered.response_code_details[:MOST_CHARACTERS],
        policy=_policy(common),
        seconds=ended.ToTimedelta().total_seconds(),
        received_bytes=asked.request_body_bytes,
        sent_bytes=answered.response_body_bytes,
    )


def _caller(tls: accesslog_pb2.TLSProperties) -> ServiceIdentity | None:
    for name in tls.peer_certificate_properties.subject_alt_name:
        if match := _SPIFFE.fullmatch(name.uri):
            return ServiceIdentity(Namespace(match["namespace"]), ServiceAccountName(match["account"]))
    return None


def _port(address: address_pb2.Address) -> Port:
    return Port(address.socket_address.port_value)


def _grpc_status(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else None


def _flags(flags: accesslog_pb2.ResponseFlags) -> Iterator[str]:
    """Yield the names of set response flags, in Envoy's order, for example `upstream_request_timeout`."""
    yield from (field.name for field, _ in flags.ListFields())


def _policy(common: accesslog_pb2.AccessLogCommon) -> str:
    noted = common.metadata.filter_metadata[rbac.HTTP_FILTER].fields
    named = noted[rbac.ADMITTING].string_value if rbac.ADMITTING in noted else ""
    return named[:MOST_CHARACTERS]
