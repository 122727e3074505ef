"""What one group of proxies needs, in mesh words: the value that every sidecar driver translates."""

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Self, TypeVar

from catalog.policy.outside import OutsidePort
from catalog.store.settings import DenialReasons, HeaderLimits, MethodOverrides
from meshwright.mesh.config import TlsVersion, Tracing
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.long_lived import LongLived
from meshwright.mesh.names import IpAddress, Port, TrustDomain
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.authorization import Authorizer
from meshwright.mesh.policies.callers import AuthenticatedName, Caller, EncryptedRange, IpRange
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimits
from meshwright.mesh.policies.resilience import Resilience
from meshwright.mesh.policies.retries import Retries
from meshwright.mesh.policies.routing import RouteActions
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.policies.telemetry import AccessLog, ExtensionService
from meshwright.mesh.policies.upstreams import Balancing, Ejecting, HashKey, HealthCheck, Within
from meshwright.mesh.service import EscapedSlashes, ExternalHost, Protocol, ServiceKey, Upstream
from meshwright.mesh.tap import Tapped
from meshwright.mesh.values.hashing import HashedOnce, Shared, hashed_once
from meshwright.mesh.workload import Transparent


class InterceptionKind(enum.StrEnum):
    """How traffic comes to the proxy: redirected by the kernel, or because the proxy binds the addresses."""

    TRANSPARENT = "transparent"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True, order=True)
class SocketAddress:
    """An address and a port."""

    address: IpAddress
    port: Port

    def __str__(self) -> str:
        return str(HostPort(self.address, self.port))


@dataclass(frozen=True, slots=True)
class TlsRange:
    """The TLS versions, cipher suites and curves a proxy may speak inside the mesh; empty is its default."""

    minimum: TlsVersion
    maximum: TlsVersion
    cipher_suites: tuple[str, ...] = ()
    ecdh_curves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Logging:
    """What access logs are, `by` a Telemetry; None is as proxies have it by themselves.

    `collector` is who is told of them, where the log is exported.
    """

    by: PolicyKey | None = None
    log: AccessLog = field(default_factory=AccessLog)
    collector: ExtensionService | None = None


@hashed_once
@dataclass(frozen=True, slots=True)
class MeshTerms(HashedOnce):
    """What holds for every proxy of the mesh: whom it believes, how it speaks TLS, which headers it takes.

    `denials`: to whom it says why it has denied a request. `tracing`: whom it tells of all. `resilience`:
    what it does about endpoints that fail. `logs`: what it writes of requests and connections.
    `long_lived`: which HTTP upgrades it passes, and when it ends quiet TCP connections.
    """

    trust_domain: TrustDomain
    tls: TlsRange
    headers: HeaderLimits
    denials: DenialReasons = DenialReasons.CALLERS
    tracing: Tracing | None = None
    resilience: Resilience = field(default_factory=Resilience)
    logs: Logging = field(default_factory=Logging)
    long_lived: LongLived = field(default_factory=LongLived)

    @property
    def of_destinations(self) -> "MeshTerms":
        """What of it concerns destinations: what is denied, asked, told and written does not."""
        return _terms(self.trust_domain, self.tls, self.headers, resilience=self.resilience)


@dataclass(frozen=True, slots=True)
class AccessRule:
    """What one object (TrafficTarget, IngressBackend, MutualTLS) admits on one port: callers, with requests.

    `matches` is None where every request, or every connection, is admitted; it is never empty. Of one port's
    rules no two are `by` one object.
    """

    by: ObjectKey
    callers: tuple[Caller, ...]
    matches: tuple[HTTPMatch, ...] | None = None

    @property
    def from_outside(self) -> bool:
        """Say whether it admits anybody who is not of the mesh."""
        return not all(isinstance(each, ServiceIdentity) for each in self.callers)


@dataclass(frozen=True, slots=True)
class EveryoneInTheMesh:
    """Permissive: any caller with a service certificate of the trust domain; and from outside, by `rules`."""

    # Rules are units of their own (`left_out`), by their own text.
    rules: tuple[AccessRule, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class OnlyRules:
    """What some rule admits, and nothing else; without rules nobody is admitted."""

    rules: tuple[AccessRule, ...] = ()


Access = EveryoneInTheMesh | OnlyRules

T = TypeVar("T")
C = TypeVar("C", ServiceIdentity, IpRange, EncryptedRange, AuthenticatedName)


def admitted(access: Access, kind: type[C]) -> tuple[C, ...]:
    """Return the callers of one kind whom some rule admits to anything, sorted."""
    return tuple(sorted({each for rule in access.rules for each in rule.callers if isinstance(each, kind)}))


@dataclass(frozen=True, slots=True)
class Divided:
    """What a port admits, divided by how callers come to it: by `proven` in TLS, by `plain` in plain text."""

    proven: Access
    plain: OnlyRules


def divided(access: Access) -> Divided:
    """Divide what a port admits; a rule of both kinds of callers is in both parts, with its own of each."""
    plain = (_of_callers(each, plain=True) for each in access.rules)
    proven = (_of_callers(each, plain=False) for each in access.rules)
    return Divided(
        replace(access, rules=tuple(each for each in proven if each.callers)),
        OnlyRules(tuple(each for each in plain if each.callers)),
    )


def _of_callers(rule: AccessRule, *, plain: bool) -> AccessRule:
    found = tuple(each for each in rule.callers if isinstance(each, IpRange) is plain)
    return rule if len(found) == len(rule.callers) else replace(rule, callers=found)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who is asked about requests that policy admits: `by` an object, None: by all of the mesh."""

    authorizer: Authorizer
    by: PolicyKey | None = None


@dataclass(frozen=True, slots=True)
class NamedMatch:
    """A match by which TrafficTargets admit requests, and the HTTPRouteGroup that has it."""

    group: PolicyKey
    match: HTTPMatch


@dataclass(frozen=True, slots=True)
class InboundPort:
    """A port at which the workload is called, and who may.

    `listen` is where the proxy binds in explicit interception, None in transparent; `application` is where
    the application listens, `otherwise` where it may listen instead. `rates`: how much it takes of those who
    may call. `asked`: who may refuse what policy admits. `mesh_names` are those that callers of the mesh ask
    for in TLS, where some rule admits who shows no certificate; else there are none. `named`: the matches
    by which requests may be counted, sorted by group and name. `tapped`: which requests are told of, one by
    one.
    """

    port: Port
    protocol: Protocol
    services: tuple[ServiceKey, ...]
    application: SocketAddress
    access: Access
    listen: SocketAddress | None = None
    escaped_slashes: EscapedSlashes = EscapedSlashes.REJECT
    rates: RateLimits = field(default_factory=RateLimits)
    mesh_names: tuple[str, ...] = ()
    otherwise: SocketAddress | None = None
    asked: Asked | None = None
    named: tuple[NamedMatch, ...] = ()
    tapped: Tapped = ()


@dataclass(frozen=True, slots=True, order=True)
class WeightedBackend:
    """A share of the calls: an upstream's target port (a number, or a port's name) and a relative weight.

    `as_called`: the endpoint that was called answers, and no other is chosen (headless services).
    """

    upstream: Upstream
    target_port: str
    weight: int
    as_called: bool = False


@dataclass(frozen=True, slots=True)
class OutboundRoute:
    """Where requests go that fit any of `matches` (None: all). Without backends nobody may answer them.

    `keys`: what of a request decides, where endpoints are chosen by consistent hash. `fails_over`: of some
    backend those endpoints come first that are near; what failed there is tried again farther away.
    """

    matches: tuple[HTTPMatch, ...] | None
    backends: tuple[WeightedBackend, ...]
    split: PolicyKey | None = None
    keys: tuple[HashKey, ...] = ()
    fails_over: bool = False


@dataclass(frozen=True, slots=True)
class RequestRule:
    """What becomes of requests that fit any of `matches` (None: all), `by` a RoutePolicy.

    `mirror` is who gets copies, where that is somebody whom the workload may call.
    """

    by: PolicyKey
    matches: tuple[HTTPMatch, ...] | None
    actions: RouteActions
    mirror: WeightedBackend | None = None


@hashed_once
@dataclass(frozen=True, slots=True)
class OutboundService(HashedOnce):
    """A port of a service, or of a host outside the mesh, that the workload may call.

    `addresses` are those it is called at in transparent interception, `listen` where the proxy offers it in
    explicit. `port` is the service's; of a headless service, whose endpoints are called without a
    translation of ports, it is theirs. The first of `routes` that fits decides, and the last fits everything.
    `retries`: what the workload tries again, where a policy of its own says that. The first of `rules` that
    fits a request says what becomes of it, whichever route it takes; nothing does where none fits.
    """

    upstream: Upstream
    port: Port
    protocol: Protocol
    routes: tuple[OutboundRoute, ...]
    addresses: tuple[IpAddress, ...] = ()
    listen: tuple[SocketAddress, ...] = ()
    escaped_slashes: EscapedSlashes = EscapedSlashes.REJECT
    retries: Retries | None = None
    rules: tuple[RequestRule, ...] = ()

    @property
    def fails_over(self) -> bool:
        """Whether what failed near is tried again farther away, on some route."""
        return any(each.fails_over for each in self.routes)


@dataclass(frozen=True, slots=True, order=True)
class DestinationEndpoint:
    """Who is behind a destination, at one address or else another; `weight` is relative, at least 1."""

    address: IpAddress
    port: Port
    locality: str = ""
    weight: int = 1
    other_addresses: tuple[IpAddress, ...] = ()


@dataclass(frozen=True, slots=True)
class Near:
    """Where callers are that prefer what is near: `place` is their region, or region and zone."""

    place: str
    within: Within
    fails_over: bool = True


@hashed_once
@dataclass(frozen=True, slots=True)
class ServiceDestination(HashedOnce):
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
    ejecting: Ejecting | None = None
    balancing: Balancing = Balancing.ROUND_ROBIN
    checking: HealthCheck | None = None
    near: Near | None = None


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


@dataclass(frozen=True, slots=True)
class Reachable:
    """Services that may be called, and the destinations of their routes; `common` to many groups or not."""

    services: Shared[OutboundService] = field(default_factory=Shared)
    destinations: Shared[Destination] = field(default_factory=Shared)
    common: bool = False

    @classmethod
    def of(cls, services: Iterable[OutboundService], destinations: Iterable[Destination] = ()) -> Self:
        """Make one of what is sorted already."""
        return cls(Shared(services), Shared(destinations))


@dataclass(frozen=True, slots=True)
class ProxyPolicy:
    """Everything that a group of proxies needs; all sequences sorted, so equal needs are equal values.

    What may be called is in `reachable`: what everybody may call first, then what the group itself may; no
    service is in both. `outside`: what Egresses let it call; `passthrough`: calls to unknown destinations
    pass; of either, but to those in `closed`. `transparent`: how connections are led to the proxy (all four
    in transparent interception only).
    """

    identity: ServiceIdentity
    primary: ServiceKey
    trust_domain: TrustDomain
    interception: InterceptionKind
    tls: TlsRange
    inbound: tuple[InboundPort, ...]
    reachable: tuple[Reachable, ...]
    passthrough: bool = False
    closed: Shared[SocketAddress] = field(default_factory=Shared)
    transparent: Transparent = field(default_factory=Transparent)
    headers: HeaderLimits = field(default_factory=HeaderLimits)
    denials: DenialReasons = DenialReasons.CALLERS
    tracing: Tracing | None = None
    outside: tuple[OutsidePort, ...] = ()
    resilience: Resilience = field(default_factory=Resilience)
    logs: Logging = field(default_factory=Logging)
    method_overrides: MethodOverrides = MethodOverrides.KEEP
    long_lived: LongLived = field(default_factory=LongLived)

    @property
    def outbound(self) -> tuple[OutboundService, ...]:
        """The service ports that may be called, sorted."""
        return services(self.reachable)

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """The places that routes lead to, sorted."""
        return _merged([each.destinations for each in self.reachable], _destination_order)

    @property
    def terms(self) -> MeshTerms:
        """What holds for every other proxy as well."""
        return _terms(
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
        return tuple(each for each in self.destinations if isinstance(each, ServiceDestination))


_terms: Final = lru_cache(64)(MeshTerms)
"""The very same for all policies: they stand in the keys of whatever is made once for a mesh."""


def services(parts: Iterable[Reachable]) -> tuple[OutboundService, ...]:
    """Return the service ports of several parts, sorted."""
    return _merged([each.services for each in parts], _service_order)


def _merged(parts: list[Shared[T]], order: Callable[[T], tuple[Any, ...]]) -> tuple[T, ...]:
    if len(parts) == 1:
        return parts[0]
    return tuple(sorted((each for part in parts for each in part), key=order))


def _service_order(service: OutboundService) -> tuple[Any, ...]:
    return (*_upstream_order(service.upstream), service.port)


def _destination_order(found: Destination) -> tuple[Any, ...]:
    match found:
        case ServiceDestination(service, target_port):
            return (*_upstream_order(service), target_port, found.as_called)
        case ExternalDestination(host, port):
            return (*_upstream_order(host), str(port), False)


def _upstream_order(upstream: Upstream) -> tuple[Any, ...]:
    return (isinstance(upstream, ExternalHost), upstream)
