"""Telemetry of proxies: access logs, sampling of traces, and their destinations."""

from dataclasses import dataclass, field
from datetime import timedelta

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.smi import PolicyKey


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Format of access logs: a line of text with Envoy's operators; values are not escaped."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """A JSON object, as text with sorted keys; strings contain Envoy's operators.

    Values are escaped. For example: `{"code": "%RESPONSE_CODE%"}`.
    """

    text: str


LogFormat = TextFormat | JsonFormat


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Filter of logged requests; a request must match all fields.

    `min_status` is the lowest status; connections match if they ended with an error. `percent` is a random
    sample.
    """

    min_status: int | None = None
    min_duration: timedelta | None = None
    percent: float = 100.0


@dataclass(frozen=True, slots=True)
class ExtensionService:
    """config.openservicemesh.io ExtensionService: a server beside the mesh, over gRPC in plain text."""

    key: PolicyKey
    server: HostPort
    connect_timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class LogExport:
    """Export of access logs to an ExtensionService with OpenTelemetry's protocol, with further attributes."""

    service: PolicyKey
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AccessLog:
    """Destinations and format of access logs; a format of None is the proxy's own.

    `file` is a path on the proxy's machine, or empty. Without any of the three destinations logs are off.
    """

    format: LogFormat | None = None
    stdout: bool = True
    file: str = ""
    export: LogExport | None = None
    filter: LogFilter = field(default_factory=LogFilter)


@dataclass(frozen=True, slots=True)
class Telemetry:
    """policy.openservicemesh.io Telemetry: telemetry of the proxies of a namespace, or of some workloads.

    `selector` are the labels of these workloads, empty for the whole namespace. `access_log` and `sampling`,
    a percentage of traced requests, are None if missing in the object. `created` is
    `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: PolicyKey
    selector: tuple[tuple[str, str], ...] = ()
    access_log: AccessLog | None = None
    sampling: float | None = None
    created: str = ""
