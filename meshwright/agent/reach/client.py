"""gRPC health check: asks whether a control plane serves this proxy, without a discovery stream."""

import os
from collections.abc import Iterable
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

os.environ.setdefault(
    "GRPC_VERBOSITY", "NONE"
)  # no raw log lines of gRPC; errors are reported in our own sentences

import grpc
from grpc_health.v1 import health_pb2

from meshwright.agent.credentials import tls_contents
from meshwright.agent.reach.observations import ServerAnswer
from meshwright.mesh.host_port import HostPort
from meshwright.tls.grpc_channel import channel_credentials

DISCOVERY: Final = "envoy.service.discovery.v3.AggregatedDiscoveryService"
REASON: Final = "meshwright-reason"
"""Trailer with the control plane's word for a refusal or a missing configuration."""

_CHECK: Final = "/grpc.health.v1.Health/Check"


async def ask(at: HostPort, credentials: Path, name: str, seconds: float) -> ServerAnswer:
    """Call the gRPC health check of the control plane's discovery service for this proxy.

    An unsuccessful answer is returned, not raised. Raises CredentialsError for unusable files.
    """
    tls = channel_credentials(tls_contents(credentials))
    options = [("grpc.ssl_target_name_override", name), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.secure_channel(str(at), tls, options=options) as channel:
        check = channel.unary_unary(
            _CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        call = check(health_pb2.HealthCheckRequest(service=DISCOVERY), timeout=seconds)
        code, answer = await call.code(), await call.details()
        return _answered(code.name, answer or "", await call.trailing_metadata() or ())


def _answered(status: str, message: str, trailers: Iterable[tuple[str, str | bytes]]) -> ServerAnswer:
    fields = {name: value for name, value in trailers if isinstance(value, str)}
    return ServerAnswer(status, message, fields.get(REASON, ""), _date(fields.get("date", "")))


def _date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
