"""The access log: one JSON line per request or connection, on Envoy's standard output.

Every filter chain has it, so it is made once; whoever puts it into a message copies it. It is two thirds of
an outbound listener (1012 bytes for each HTTP chain), and stays: the same line as text would be 850 bytes,
but text formats escape nothing, so that a quote in a User-Agent would write fields of its own, and numbers
would become text. Access loggers cannot be discovered by a name of their own, as routes and secrets are.
"""

from functools import cache
from typing import Final

from google.protobuf.struct_pb2 import Struct

from protos.envoy.config.accesslog.v3 import accesslog_pb2
from protos.envoy.config.core.v3 import substitution_format_string_pb2
from protos.envoy.extensions.access_loggers.stream.v3 import stream_pb2
from sidecars.envoy import rbac
from sidecars.envoy.typed import packed

_CONNECTION: Final = {
    "start_time": "%START_TIME%",
    "response_flags": "%RESPONSE_FLAGS%",
    "bytes_received": "%BYTES_RECEIVED%",
    "bytes_sent": "%BYTES_SENT%",
    "duration": "%DURATION%",
    "caller": "%DOWNSTREAM_PEER_URI_SAN%",
    "caller_address": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%",
    "local_address": "%DOWNSTREAM_LOCAL_ADDRESS%",
    "requested_server_name": "%REQUESTED_SERVER_NAME%",
    "upstream_cluster": "%UPSTREAM_CLUSTER%",
    "upstream_host": "%UPSTREAM_HOST%",
    "upstream_transport_failure_reason": "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
    "downstream_transport_failure_reason": "%DOWNSTREAM_TRANSPORT_FAILURE_REASON%",
}
_REQUEST: Final = _CONNECTION | {
    "method": "%REQ(:METHOD)%",
    "path": "%REQ(:PATH)%",
    "protocol": "%PROTOCOL%",
    "authority": "%REQ(:AUTHORITY)%",
    "request_id": "%REQ(X-REQUEST-ID)%",
    "user_agent": "%REQ(USER-AGENT)%",
    "response_code": "%RESPONSE_CODE%",
    "response_code_details": "%RESPONSE_CODE_DETAILS%",
    "route_name": "%ROUTE_NAME%",
}
_JUDGED: Final = _REQUEST | {
    "policy": f"%DYNAMIC_METADATA({rbac.HTTP_FILTER}:{rbac.ADMITTING})%",
    "policy_looked_for": f"%DYNAMIC_METADATA({rbac.HTTP_FILTER}:{rbac.LOOKED_FOR})%",
}


@cache
def requests() -> accesslog_pb2.AccessLog:
    """Log requests. `caller` is the caller's SPIFFE ID; the path is logged with its query."""
    return _stdout(_REQUEST)


@cache
def judged_requests() -> accesslog_pb2.AccessLog:
    """Log requests to the workload: also the policy that has admitted one, and the one that was looked for.

    See `sidecars.envoy.features.denials`.
    """
    return _stdout(_JUDGED)


@cache
def connections() -> accesslog_pb2.AccessLog:
    """Log connections: what of a request's fields makes sense for one."""
    return _stdout(_CONNECTION)


def _stdout(fields: dict[str, str]) -> accesslog_pb2.AccessLog:
    lines = Struct()
    lines.update(fields)
    log = stream_pb2.StdoutAccessLog(
        log_format=substitution_format_string_pb2.SubstitutionFormatString(json_format=lines)
    )
    return accesslog_pb2.AccessLog(name="envoy.access_loggers.stdout", typed_config=packed(log))
