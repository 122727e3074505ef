"""Settings of the mesh, as in OSM's MeshConfig."""

import enum
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import InterfaceName, Port, SecretName
from meshwright.mesh.policies.authorization import Authorizer

VALIDITY: Final = timedelta(hours=24)
"""Default lifetime of certificates of services and gateways."""


class TlsVersion(enum.StrEnum):
    """TLS protocol versions that a proxy may speak, as MeshConfig spells them."""

    V1_2 = "TLSv1_2"
    V1_3 = "TLSv1_3"


@dataclass(frozen=True, slots=True)
class SidecarDriverSettings:
    """One entry of MeshConfig `sidecar.sidecarDrivers[]`: a driver's name, images and port."""

    name: str
    linux_image: str = ""
    windows_image: str = ""
    init_image: str = ""
    proxy_server_port: int | None = None
    disabled_mtls: bool = False


@dataclass(frozen=True, slots=True)
class SidecarSettings:
    """MeshConfig `sidecar`: settings of every sidecar."""

    sidecar_class: str = ""
    """The mesh's driver; empty leaves it to the control plane's environment."""
    drivers: tuple[SidecarDriverSettings, ...] = ()
    log_level: str = "error"
    linux_image: str = ""
    windows_image: str = ""
    init_image: str = ""
    tls_min_version: TlsVersion = TlsVersion.V1_2
    tls_max_version: TlsVersion = TlsVersion.V1_3
    cipher_suites: tuple[str, ...] = ()
    ecdh_curves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Traffic of a pod that bypasses its proxy; ranges are CIDRs, for example `10.0.0.0/8`.

    If `ranges_included` is not None, only these destinations are proxied. Traffic on `interfaces` bypasses
    the proxy in both directions.
    """

    inbound_ports: tuple[Port, ...] = ()
    outbound_ports: tuple[Port, ...] = ()
    ranges_included: tuple[str, ...] | None = None
    ranges_excluded: tuple[str, ...] = ()
    interfaces: tuple[InterfaceName, ...] = ()


class TracingProtocol(enum.StrEnum):
    """Protocol of spans, and of the request headers linking them.

    The values are as in manifests.
    """

    ZIPKIN = "Zipkin"
    """Zipkin's, version 2 as JSON; B3."""
    OTLP = "OTLP"
    """OpenTelemetry's, over gRPC; the W3C's traceparent and tracestate."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """Destination of the sidecars' spans: a collector of `protocol`, in plain text.

    The host of `collector` is a DNS name or an IP address; `endpoint` is a path there (Zipkin only).
    `percent` of the requests beginning in the mesh are sampled; an earlier sampling decision is kept.
    """

    collector: HostPort
    endpoint: str = "/api/v2/spans"
    percent: float = 100.0
    protocol: TracingProtocol = TracingProtocol.ZIPKIN


@dataclass(frozen=True, slots=True)
class GatewayCertificate:
    """Certificate for a gateway in front of the mesh: the sorted DNS names, and the Secret to be written."""

    secret: SecretName
    dns_names: tuple[str, ...]
    validity: timedelta = VALIDITY


@dataclass(frozen=True, slots=True)
class MeshConfig:
    """The mesh-wide configuration; the defaults are Meshwright's (everything closed).

    `created` is `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    permissive: bool = False
    egress: bool = False
    service_certificate_validity: timedelta = VALIDITY
    sidecar: SidecarSettings = field(default_factory=SidecarSettings)
    exclusions: Exclusions = field(default_factory=Exclusions)
    """For every pod that gets a sidecar from then on; running pods are not changed."""
    authorization: Authorizer | None = None
    tracing: Tracing | None = None
    ingress_gateway: GatewayCertificate | None = None
    created: str = ""
