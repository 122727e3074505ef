"""ProxyPolicy: the complete policy of a group of proxies, translated by every sidecar driver."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from catalog.policy.values.destinations import Destination, ExternalDestination, ServiceDestination
from catalog.policy.values.edge import EdgePort
from catalog.policy.values.inbound import InboundPort
from catalog.policy.values.interception import InterceptionKind, SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.outside import OutsidePort
from catalog.policy.values.terms import AccessLogPolicy, MeshTerms, TlsRange, shared_terms
from catalog.store.settings import DenialReasons, HeaderLimits, MethodOverrides
from meshwright.mesh.config import Tracing
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.long_lived import LongLived
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.policies.resilience import Resilience
from meshwright.mesh.service import ExternalHost, ServiceKey, Upstream
from meshwright.mesh.values.cached_hash import SharedTuple
from meshwright.mesh.workload import Transparent

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReachableServices:
    """Callable services with the destinations of their routes; `common` if shared by many groups."""

    services: SharedTuple[OutboundService] = field(default_factory=SharedTuple)
    destinations: SharedTuple[Destination] = field(default_factory=SharedTuple)
    common: bool = False

    @classmethod
    def from_sorted(
        cls, services: Iterable[OutboundService], destinations: Iterable[Destination] = ()
    ) -> Self:
        """Return an instance with these services and destinations, both already sorted."""
        return cls(SharedTuple(services), SharedTuple(destinations))


@dataclass(frozen=True, slots=True)
class ProxyPolicy:
    """The complete policy of a group of proxies; all sequences are sorted, so equal needs are equal values.

    `reachable` has the callable services: first the common ones, then the group's own, without duplicates.
    `outside` are calls allowed by Egresses, and with `passthrough` calls to unknown destinations pass; both
    except to addresses in `closed`. `transparent` describes the redirection of connections. These four only
    matter in transparent interception. `edge` are the ports of a gateway's proxies, whose destinations are in
    `reachable` without services.
    """

    identity: ServiceIdentity
    primary: ServiceKey
    trust_domain: TrustDomain
    interception: InterceptionKind
    tls: TlsRange
    inbound: tuple[InboundPort, ...]
    reachable: tuple[ReachableServices, ...]
    passthrough: bool = False
    closed: SharedTuple[SocketAddress] = field(default_factory=SharedTuple)
    transparent: Transparent = field(default_factory=Transparent)
    headers: HeaderLimits = field(default_factory=HeaderLimits)
    denials: DenialReasons = DenialReasons.CALLERS
    tracing: Tracing | None = None
    outside: tuple[OutsidePort, ...] = ()
    resilience: Resilience = field(default_factory=Resilience)
    logs: AccessLogPolicy = field(default_factory=AccessLogPolicy)
    method_overrides: MethodOverrides = MethodOverrides.KEEP
    long_lived: LongLived = field(default_factory=LongLived)
    edge: tuple[EdgePort, ...] = ()

    @property
    def outbound(self) -> tuple[OutboundService, ...]:
        """The callable service ports, sorted."""
        return services(self.reachable)

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """The destinations of all routes, sorted."""
        return _merged(
            [reachable_services.destinations for reachable_services in self.reachable], _destination_order
        )

    @property
    def terms(self) -> MeshTerms:
        """The terms in this policy that are the same for every other proxy."""
        return shared_terms(
            self.trust_domain,
            self.tls,
            self.headers,
            self.denials,
            self.tracing,
            self.resilience,
            self.logs,
            self.long_lived,
        )

    @property
    def service_destinations(self) -> tuple[ServiceDestination, ...]:
        """The destinations in the mesh."""
        return tuple(
            destination for destination in self.destinations if isinstance(destination, ServiceDestination)
        )


def services(parts: Iterable[ReachableServices]) -> tuple[OutboundService, ...]:
    """Return the callable service ports of several parts, sorted."""
    return _merged([part.services for part in parts], _service_order)


def _merged(parts: list[SharedTuple[T]], order: Callable[[T], tuple[Any, ...]]) -> tuple[T, ...]:
    if len(parts) == 1:
        return parts[0]
    return tuple(sorted((item for part in parts for item in part), key=order))


def _service_order(service: OutboundService) -> tuple[Any, ...]:
    return (*_upstream_order(service.upstream), service.port)


def _destination_order(result: Destination) -> tuple[Any, ...]:
    match result:
        case ServiceDestination(service, target_port):
            policy = "" if result.tls is None else str(result.tls.policy)
            return (*_upstream_order(service), target_port, result.as_called, result.version, policy)
        case ExternalDestination(host, port):
            return (*_upstream_order(host), str(port), False, "", "")


def _upstream_order(upstream: Upstream) -> tuple[Any, ...]:
    return (isinstance(upstream, ExternalHost), upstream)
