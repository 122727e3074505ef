"""What proxies tell of requests and connections: access logs, how much is traced, and whom they tell."""

from dataclasses import dataclass, field
from datetime import timedelta

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.policies.smi import PolicyKey


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A line as it is, with Envoy's operators in it; nothing in it is escaped."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """An object in JSON, as text with sorted keys, of texts with Envoy's operators; values are escaped."""

    text: str


LogFormat = TextFormat | JsonFormat


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which requests are logged: those that are all of it.

    `min_status`: those answered with it or a higher one, of connections those that ended with an error.
    `percent`: how many of a hundred, drawn by lot.
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
    """Access logs that an ExtensionService is told by OpenTelemetry's protocol, with further attributes."""

    service: PolicyKey
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AccessLog:
    """Where access logs go, and what stands in them; None is the proxy's own format.

    `file` is a path on the proxy's machine, empty for none. Without any of the three nothing is logged.
    """

    format: LogFormat | None = None
    stdout: bool = True
    file: str = ""
    export: LogExport | None = None
    filter: LogFilter = field(default_factory=LogFilter)


@dataclass(frozen=True, slots=True)
class Telemetry:
    """policy.openservicemesh.io Telemetry: what proxies of a namespace tell, or those of some workloads.

    `selector`: the labels that those workloads have, none for the whole namespace.
    `access_log` and `sampling`, how many of a hundred requests are traced, are None where nothing is said.
    `created` is `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
    """

    key: PolicyKey
    selector: tuple[tuple[str, str], ...] = ()
    access_log: AccessLog | None = None
    sampling: float | None = None
    created: str = ""
