"""Access log: by default one JSON line per request or connection on Envoy's standard output.

Every filter chain contains the log, so the message is made once and copied. The log is two thirds of an
outbound listener (1012 bytes for each HTTP chain). A text format would take 850 bytes, but text formats do
not escape: a quote in a User-Agent could forge fields, and numbers would become text. Envoy lacks a discovery
service for access loggers, so they cannot be shared like routes and secrets.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.struct_pb2 import Struct

from catalog.policy.values.terms import AccessLogPolicy
from meshwright.mesh.policies.telemetry import (
    ExtensionService,
    JsonFormat,
    LogExport,
    LogFilter,
    LogFormat,
    TextFormat,
)
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import packed, percent
from meshwright.sidecars.envoy.rules import rbac
from protos.envoy.config.accesslog.v3 import accesslog_pb2
from protos.envoy.config.core.v3 import (
    base_pb2,
    config_source_pb2,
    grpc_service_pb2,
    substitution_format_string_pb2,
)
from protos.envoy.extensions.access_loggers.file.v3 import file_pb2
from protos.envoy.extensions.access_loggers.grpc.v3 import als_pb2
from protos.envoy.extensions.access_loggers.open_telemetry.v3 import logs_service_pb2
from protos.envoy.extensions.access_loggers.stream.v3 import stream_pb2
from protos.opentelemetry.proto.common.v1 import common_pb2

ALIKE: Final = 64
"""Number of cached access logs; most proxies of a mesh have the same."""

LOG_NAME: Final = "meshwright"
_RUNTIME: Final = "meshwright.access_log"
"""Runtime key for a field required by Envoy; the runtime layers never set the key."""

_AccessLog = accesslog_pb2.AccessLog
_Filter = accesslog_pb2.AccessLogFilter
_Format = substitution_format_string_pb2.SubstitutionFormatString

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


@lru_cache(ALIKE)
def requests(logs: AccessLogPolicy) -> tuple[_AccessLog, ...]:
    """Return the logs of requests. `caller` is the caller's SPIFFE ID; the path includes the query."""
    return _logs(logs, _REQUEST, _of_requests)


@lru_cache(ALIKE)
def judged_requests(logs: AccessLogPolicy) -> tuple[_AccessLog, ...]:
    """Return the logs of inbound requests, with the admitting policy and the policy behind a denial.

    See `meshwright.sidecars.envoy.features.denials`.
    """
    return _logs(logs, _JUDGED, _of_requests)


@lru_cache(ALIKE)
def connections(logs: AccessLogPolicy) -> tuple[_AccessLog, ...]:
    """Return the access logs of connections, with the fields of a connection."""
    return _logs(logs, _CONNECTION, _of_connections)


def _logs(
    logs: AccessLogPolicy, fields: dict[str, str], passing: Callable[[LogFilter], Iterator[_Filter]]
) -> tuple[_AccessLog, ...]:
    log = logs.log
    access_logs = []
    if log.stdout:
        out = stream_pb2.StdoutAccessLog(log_format=_format(log.format, fields))
        access_logs.append(_AccessLog(name="envoy.access_loggers.stdout", typed_config=packed(out)))
    if log.file:
        file = file_pb2.FileAccessLog(path=log.file, log_format=_format(log.format, fields))
        access_logs.append(_AccessLog(name="envoy.access_loggers.file", typed_config=packed(file)))
    if log.export is not None and logs.collector is not None:
        log_config = _export(logs.collector, log.export, log.format, fields)
        access_logs.append(
            _AccessLog(name="envoy.access_loggers.open_telemetry", typed_config=packed(log_config))
        )
    filters = [*passing(log.filter), *_sampled(log.filter)]
    for access_log in access_logs:
        # Envoy refuses an `and_filter` with fewer than two filters.
        if len(filters) == 1:
            access_log.filter.CopyFrom(filters[0])
        elif filters:
            access_log.filter.and_filter.filters.extend(filters)
    return tuple(access_logs)


def _format(log_format: LogFormat | None, fields: dict[str, str]) -> _Format:
    match log_format:
        case None:
            return _Format(json_format=_struct(fields))
        case JsonFormat(text):
            return _Format(json_format=json_format.Parse(text, Struct()))
        case TextFormat(text):
            # Envoy writes the text as given, so without this all entries would be on one line.
            line = text if text.endswith("\n") else f"{text}\n"
            return _Format(text_format_source=base_pb2.DataSource(inline_string=line))


def _struct(fields: dict[str, str]) -> Struct:
    struct = Struct()
    struct.update(fields)
    return struct


def _export(
    to: ExtensionService, export: LogExport, log_format: LogFormat | None, fields: dict[str, str]
) -> logs_service_pb2.OpenTelemetryAccessLogConfig:
    """Return the export to a collector; the record's body is the line, or a map of the fields."""
    match log_format:
        case TextFormat(text):
            body = common_pb2.AnyValue(string_value=text)
        case JsonFormat(text):
            body = _any(json.loads(text))
        case None:
            body = _any(fields)
    envoy = grpc_service_pb2.GrpcService.EnvoyGrpc(cluster_name=names.extension_cluster(to.key))
    return logs_service_pb2.OpenTelemetryAccessLogConfig(
        # Deprecated since 1.38, but the only way in the oldest supported Envoys.
        common_config=als_pb2.CommonGrpcAccessLogConfig(
            log_name=LOG_NAME,
            grpc_service=grpc_service_pb2.GrpcService(envoy_grpc=envoy),
            transport_api_version=config_source_pb2.ApiVersion.V3,
        ),
        body=body,
        attributes=_pairs(dict(export.attributes)),
    )


def _any(result: object) -> common_pb2.AnyValue:
    """Return a JSON value as an OpenTelemetry value; Envoy expands operators in texts (`%PROTOCOL%`)."""
    match result:
        case Mapping():
            return common_pb2.AnyValue(kvlist_value=_pairs(result))
        case list():
            return common_pb2.AnyValue(array_value=common_pb2.ArrayValue(values=map(_any, result)))
        case str():
            return common_pb2.AnyValue(string_value=result)
        case _:
            return common_pb2.AnyValue(string_value=json.dumps(result))


def _pairs(result: Mapping[str, Any]) -> common_pb2.KeyValueList:
    values = [common_pb2.KeyValue(key=name, value=_any(value)) for name, value in result.items()]
    return common_pb2.KeyValueList(values=values)


def _of_requests(wanted: LogFilter) -> Iterator[_Filter]:
    if wanted.min_status is not None:
        least = base_pb2.RuntimeUInt32(default_value=wanted.min_status, runtime_key=_RUNTIME)
        comparison = accesslog_pb2.ComparisonFilter(op=accesslog_pb2.ComparisonFilter.Op.GE, value=least)
        yield _Filter(status_code_filter=accesslog_pb2.StatusCodeFilter(comparison=comparison))
    yield from _slow(wanted)


def _of_connections(wanted: LogFilter) -> Iterator[_Filter]:
    """Yield the filters for connections, which have a response flag after an error instead of a status."""
    if wanted.min_status is not None:
        yield _Filter(response_flag_filter=accesslog_pb2.ResponseFlagFilter())
    yield from _slow(wanted)


def _slow(wanted: LogFilter) -> Iterator[_Filter]:
    if wanted.min_duration is not None:
        least = base_pb2.RuntimeUInt32(
            default_value=wanted.min_duration // timedelta(milliseconds=1), runtime_key=_RUNTIME
        )
        comparison = accesslog_pb2.ComparisonFilter(op=accesslog_pb2.ComparisonFilter.Op.GE, value=least)
        yield _Filter(duration_filter=accesslog_pb2.DurationFilter(comparison=comparison))


def _sampled(wanted: LogFilter) -> Iterator[_Filter]:
    if wanted.percent < 100:
        yield _Filter(
            runtime_filter=accesslog_pb2.RuntimeFilter(
                runtime_key=_RUNTIME,
                percent_sampled=percent(wanted.percent),
                # Otherwise Envoy samples by X-Request-Id, which clients can choose.
                use_independent_randomness=True,
            )
        )
