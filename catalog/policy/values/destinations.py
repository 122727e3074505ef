"""Places to which proxies open connections: services of the mesh, and hosts outside the mesh."""

from dataclasses import dataclass, field

from catalog.policy.values.route_actions import HttpVersion
from meshwright.mesh.gateway.backend_tls import AltName
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.policies.limits import ConnectionLimits
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.upstreams import (
    BalancingAlgorithm,
    HealthCheck,
    LocalityScope,
    OutlierDetectionOverride,
)
from meshwright.mesh.service import ExternalHost, ServiceKey
from meshwright.mesh.values.cached_hash import CachedHash, hashed_once


@dataclass(frozen=True, slots=True, order=True)
class DestinationEndpoint:
    """Endpoint of a destination, with alternative addresses; `weight` is relative, at least 1."""

    address: IpAddress
    port: Port
    locality: str = ""
    weight: int = 1
    other_addresses: tuple[IpAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class CallerLocality:
    """Locality of callers that prefer near endpoints: `place` is a region, or region and zone."""

    place: str
    within: LocalityScope
    fails_over: bool = True


@hashed_once
@dataclass(frozen=True, slots=True)
class ServiceDestination(CachedHash):
    """A service's target port as a place to connect to.

    `identities` may answer there; if empty, none may. `server_name` is the name requested in TLS. With
    `as_called` (see `WeightedBackend`) there are no endpoints. `caller` is the client, or `None` if all
    clients of the mesh are equal. `limits` hold for each caller. `ejecting` replaces the mesh's outlier
    detection, unless `None`. `checking` is the active health check, if any. `near` is the locality of callers
    with a preference for near endpoints. Requests are sent in the `version` of HTTP. With `plain`, no
    endpoint has a sidecar, and a gateway connects without the mesh's TLS; the mesh never does. `tls` is then
    the TLS that a BackendTLSPolicy demands, if any.
    """

    service: ServiceKey
    target_port: str
    is_http: bool
    server_name: str
    identities: tuple[ServiceIdentity, ...]
    endpoints: tuple[DestinationEndpoint, ...]
    as_called: bool = False
    caller: ServiceIdentity | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    ejecting: OutlierDetectionOverride | None = None
    balancing: BalancingAlgorithm = BalancingAlgorithm.ROUND_ROBIN
    checking: HealthCheck | None = None
    near: CallerLocality | None = None
    version: HttpVersion = HttpVersion.CALLERS
    plain: bool = False
    tls: "BackendTls | None" = None


@dataclass(frozen=True, slots=True)
class BackendTls:
    """TLS of a gateway to endpoints without a sidecar, by a BackendTLSPolicy.

    An endpoint's certificate must be signed by `roots` (PEM; None for those of the proxy's system), and have
    one of the `names`. The gateway shows the `certificate` of this Secret, if any.
    """

    policy: PolicyKey
    server_name: str
    names: tuple[AltName, ...]
    roots: str | None = field(repr=False)
    certificate: PolicyKey | None = None


@dataclass(frozen=True, slots=True)
class TlsOrigination:
    """TLS that the proxy adds for the application to a host outside the mesh.

    The host's certificate must be valid for `server_name` (a DNS name) and signed by `roots` (PEM). Both are
    required.
    """

    server_name: str
    roots: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ExternalDestination:
    """A port of a host outside the mesh as a place to connect to, without the mesh's TLS.

    The proxy looks the host up in DNS. Without `tls` the application's data is forwarded unchanged. `limits`
    hold for each caller.
    """

    host: ExternalHost
    port: Port
    is_http: bool
    tls: TlsOrigination | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)


Destination = ServiceDestination | ExternalDestination
