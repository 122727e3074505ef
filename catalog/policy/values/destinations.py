"""Places that proxies open connections to: services of the mesh, and hosts outside the mesh."""

from dataclasses import dataclass, field

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.policies.limits import ConnectionLimits
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
    """Who is behind a destination, at one address or else another; `weight` is relative, at least 1."""

    address: IpAddress
    port: Port
    locality: str = ""
    weight: int = 1
    other_addresses: tuple[IpAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class CallerLocality:
    """Where callers are that prefer what is near: `place` is their region, or region and zone."""

    place: str
    within: LocalityScope
    fails_over: bool = True


@hashed_once
@dataclass(frozen=True, slots=True)
class ServiceDestination(CachedHash):
    """A service's target port as a place that connections are opened to.

    `identities` are those that may answer there; none means that nobody may. `server_name` is the name that
    the caller asks for in TLS. `as_called`: see `WeightedBackend`; there are no endpoints then. `caller` is
    who calls, None where that makes no difference: everybody in the mesh may. `limits` hold for each caller.
    `ejecting` is in place of what holds for the mesh, None: nothing is. Without `checking` none is asked.
    `near`: where its callers are, if they prefer what is near.
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


@dataclass(frozen=True, slots=True)
class TlsOrigination:
    """TLS that the proxy speaks for the application to a host outside the mesh.

    It asks for `server_name`, a name in the DNS, which the host's certificate must be for; `roots` (PEM) must
    vouch for it. There is no TLS without either.
    """

    server_name: str
    roots: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ExternalDestination:
    """A port of a host outside the mesh as a place that connections are opened to: without the mesh's TLS.

    Where it is, is asked of the DNS by the proxy. Without `tls` what the application sends goes on as it is.
    `limits` hold for each caller.
    """

    host: ExternalHost
    port: Port
    is_http: bool
    tls: TlsOrigination | None = None
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)


Destination = ServiceDestination | ExternalDestination
