"""Servers outside the mesh in a MeshConfig: an external authorizer and a tracing collector.

The fields of a disabled server are not read, so any value is accepted.
"""

import re
from dataclasses import replace
from typing import Final

from meshwright.mesh.config import Tracing, TracingProtocol
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.authorization import Authorizer
from meshwright.specs.fields import Fields
from meshwright.specs.values.authorizers import STAT_PREFIX, patience
from meshwright.specs.values.references import host

_AUTHORIZATION: Final = ("address", "enable", "failureModeAllow", "port", "statPrefix", "timeout")
_TRACING: Final = ("address", "enable", "endpoint", "port", "protocol")
_COLLECTING: Final = {TracingProtocol.ZIPKIN: 9411, TracingProtocol.OTLP: 4317}
"""Default ports of collectors."""

_PATH: Final = re.compile("/[!-~]*")
_PREFIX_LENGTH: Final = 64


def external_authorization(fields: Fields) -> Authorizer | None:
    """Read `inboundExternalAuthorization`; None if disabled."""
    fields.accept(*_AUTHORIZATION)
    if not fields.flag("enable"):
        return None
    where, port = host(fields, "address"), fields.port("port")
    if not (fields.raw("address") and fields.has("port")):
        fields.wrong("enable", "needs the fields address and port of the authorizer")
    return Authorizer(
        # After an error any port will do, because the object is refused.
        server=HostPort(where, port or 1),
        stat_prefix=_stat_prefix(fields),
        timeout=patience(fields),
        fails_open=fields.flag("failureModeAllow"),
    )


def tracing(fields: Fields, home: Namespace) -> Tracing | None:
    """Read `tracing`; None if disabled. The collector defaults to `jaeger` in the namespace `home`.

    `protocol` is our own field: Open Service Mesh supports only Zipkin's protocol.
    """
    fields.accept(*_TRACING)
    if not fields.flag("enable"):
        return None
    there = host(fields, "address", f"jaeger.{home}.svc.cluster.local")
    protocol = TracingProtocol(fields.choice("protocol", tuple(TracingProtocol), TracingProtocol.ZIPKIN))
    default = Tracing(HostPort(there, _COLLECTING[protocol]), protocol=protocol)
    endpoint = fields.text("endpoint") or default.endpoint
    if _PATH.fullmatch(endpoint) is None:
        fields.wrong("endpoint", f"must be a path, for example {default.endpoint}")
    elif protocol is TracingProtocol.OTLP and fields.text("endpoint"):
        fields.wrong(
            "endpoint", "must be left out with protocol OTLP, because OTLP over gRPC does not use a path"
        )
    where = HostPort(there, fields.port("port") or default.collector.port)
    return replace(default, collector=where, endpoint=endpoint)


def _stat_prefix(fields: Fields) -> str:
    text = fields.text("statPrefix") or STAT_PREFIX
    if not text.isprintable() or len(text) > _PREFIX_LENGTH:
        fields.wrong("statPrefix", f"must be printable text of at most {_PREFIX_LENGTH} characters")
    return text
