"""Division of a ProxyPolicy into the pieces that make a proxy's resources, except secrets.

Each piece gets only the parts of the policy that its function uses, so that a change elsewhere does not make
the piece again. For example, only load assignments get endpoints, and rules and splits affect only route
configurations. Services that many proxies may call are divided into batches, so that a change of one service
makes one batch again.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Final
from zlib import crc32

from catalog.policy.values.destinations import Destination, ExternalDestination, ServiceDestination
from catalog.policy.values.edge import EdgeChain, EdgeHost, EdgeTls
from catalog.policy.values.inbound import InboundPort, OnlyRules
from catalog.policy.values.interception import InterceptionKind
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.outside import OutsidePort, OutsideRange
from catalog.policy.values.parts import (
    AllInbound,
    AllOutbound,
    Application,
    Calls,
    DestinationPolicy,
    GatewayPorts,
    InboundAdmission,
    MeshWide,
    OutsideAccess,
)
from catalog.policy.values.proxy import ProxyPolicy, ReachableServices
from catalog.policy.values.route_actions import NO_BACKEND
from catalog.policy.values.route_table import RequestTreatment, RouteEntry
from catalog.policy.values.terms import AccessLogPolicy, MeshTerms
from catalog.store.settings import MethodOverrides
from meshwright.mesh.gateway.filters import Cors
from meshwright.mesh.names import Port
from meshwright.mesh.policies.client_traffic import PORT_DEFAULTS, ClientRates, ClientSettings
from meshwright.mesh.policies.limits import ConnectionLimits, RateLimit, RateLimits, RateUnit
from meshwright.mesh.policies.rate_services import RateLimitService
from meshwright.mesh.policies.resilience import RetryPolicy
from meshwright.mesh.policies.routing import Abort
from meshwright.mesh.service import EscapedSlashes, ExternalHost, ServiceKey, Upstream
from meshwright.mesh.values.cached_hash import SharedTuple
from meshwright.sidecars.contract.driver import Piece, Pieces, each_piece
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.clusters import cluster as clusters
from meshwright.sidecars.envoy.clusters import endpoints
from meshwright.sidecars.envoy.clusters.gateway_listeners import gateway_listeners
from meshwright.sidecars.envoy.judge import judged
from meshwright.sidecars.envoy.listeners import edge as edge_listeners
from meshwright.sidecars.envoy.listeners import inbound as inbound_listeners
from meshwright.sidecars.envoy.listeners import outbound as outbound_listeners
from meshwright.sidecars.envoy.listeners.outbound import OutboundInputs
from meshwright.sidecars.envoy.routes import route as routes

_Judged = partial(Piece, faults=judged)

BATCHES: Final = 64
"""Number of batches for the services that many proxies may call.

A change of a service makes one batch again; a larger number makes this cheaper, and costs more pieces.
"""

_COUNTED: Final = RateLimit(1, RateUnit.SECOND)
"""A placeholder for any rate, where only its presence matters."""

_FAULTY: Final = RouteEntry((), NO_BACKEND, treatment=RequestTreatment(abort=Abort(0, HTTPStatus.OK)))
"""A placeholder for any entry with fault injection, where only its presence matters."""

_CROSS_ORIGIN: Final = RouteEntry((), NO_BACKEND, treatment=RequestTreatment(cors=Cors()))
"""A placeholder for any entry for cross-origin requests, where only its presence matters."""

_CROSS_ORIGIN_HOST: Final = EdgeHost("", (_CROSS_ORIGIN,))
"""A placeholder for any host with an entry for cross-origin requests."""

REMEMBERED: Final = 2048
"""Number of cached pieces for called services.

Callers of the same one get the same object, without comparing.
"""


def parts(policy: ProxyPolicy) -> tuple[Piece | Pieces, ...]:
    """Return the pieces for listeners, routes, clusters and endpoints of a policy.

    Every resource is referred to, and every reference has a resource or is one of the secrets. Equal policies
    result in equal bytes.
    """
    return tuple(_parts(policy))


def _parts(policy: ProxyPolicy) -> Iterator[Piece | Pieces]:
    yield from _inbound(policy)
    yield from _edge(policy)
    yield from _external_services(policy)
    calling = _calling(policy)
    yield from _outside(policy)
    if len(policy.reachable) == 1 and policy.reachable[0].common:
        yield Pieces(_outbound, (calling,))
        return
    for services in policy.reachable:
        if services.common:
            yield Pieces(_batches, (policy.terms.of_destinations, services))
        else:
            yield from each_piece(_reached(policy.terms.of_destinations, services))
    yield from _own_listeners(calling)


def _inbound(policy: ProxyPolicy) -> Iterator[Piece]:
    headers, reuse, primary = policy.headers, policy.resilience.reuse, policy.primary
    # Fields that only outbound listeners use are cleared, so that their changes do not make this piece again.
    inbound = tuple(map(_port_of_listener, policy.inbound))
    called = replace(
        policy,
        inbound=inbound,
        reachable=(),
        outside=(),
        passthrough=False,
        closed=SharedTuple(),
        method_overrides=MethodOverrides.KEEP,  # only routes use it
    )
    yield _Judged(inbound_listeners.inbound, (called,), AllInbound())
    for port in policy.inbound:
        if inbound_listeners.is_open(port):
            bare = replace(
                port,
                services=(),
                listen=None,
                escaped_slashes=EscapedSlashes.REJECT,
                mesh_names=(),
                asked=None,
            )
            behind = replace(bare, access=OnlyRules(), rates=RateLimits(), named=(), tapped=())
            yield _Judged(clusters.application, (headers, reuse, primary, behind), Application(port.services))
            if port.protocol.is_http:
                admitting = InboundAdmission(port.port, port.protocol, port.services)
                terms = (policy.trust_domain, policy.denials, primary, bare, policy.method_overrides)
                yield _Judged(routes.inbound, terms, admitting)


def _edge(policy: ProxyPolicy) -> Iterator[Piece]:
    """Yield the pieces for listeners and routes of a gateway's ports, and for the list of its listeners."""
    about, retry = GatewayPorts(), policy.resilience.retry
    if policy.interception is InterceptionKind.EDGE:
        places = tuple(replace(port, chains=(), settings=PORT_DEFAULTS) for port in policy.edge)
        yield _Judged(gateway_listeners, (places,), about)
    for port in policy.edge:
        bare = replace(port, chains=tuple(map(_chain_of_listener, port.chains)))
        yield _Judged(edge_listeners.edge, (policy.terms, bare), about)
        for chain in port.chains:
            if chain.hosts is not None:
                yield _Judged(routes.edge, (port.port, _chain_of_routes(chain), retry), about)


def _chain_of_listener(chain: EdgeChain) -> EdgeChain:
    """Return a chain as its listener needs it: without routes of requests, and without descriptors."""
    if chain.hosts is None:
        return chain
    settings = chain.settings
    if (counted := settings.rates.limits.counted_requests) is not None:
        limits = replace(settings.rates.limits, counted_requests=replace(counted, descriptors=()))
        settings = replace(settings, rates=replace(settings.rates, limits=limits))
    return replace(chain, hosts=(_CROSS_ORIGIN_HOST,) if chain.cross_origin else (), settings=settings)


def _chain_of_routes(chain: EdgeChain) -> EdgeChain:
    """Return a chain as its routes need it: of TLS only the name, and of the settings only descriptors."""
    counted = ClientRates(RateLimits(counted_requests=chain.settings.rates.limits.counted_requests))
    chain = replace(chain, settings=ClientSettings(rates=counted))
    return chain if chain.tls is None else replace(chain, tls=EdgeTls(chain.tls.server_name))


def _external_services(policy: ProxyPolicy) -> Iterator[Piece]:
    """Yield the pieces for clusters of external services: authorizers, rate limiting, logs and tracing."""
    served = any(port.protocol.is_http and inbound_listeners.is_open(port) for port in policy.inbound)
    asking = (port.asked for port in policy.inbound if inbound_listeners.is_open(port))
    for item in sorted({(names.authorizer_cluster(it), it.authorizer.server) for it in asking if it}):
        yield _Judged(clusters.authorizer, item, AllInbound())
    counting = {service.server for port in policy.inbound for service in _counting(port)}
    counting |= {it.server for port in policy.edge for chain in port.chains for it in chain.rate_services}
    for server in sorted(counting):
        yield _Judged(clusters.rate_limits, (server,), AllInbound())
    if policy.logs.collector is not None:
        yield _Judged(clusters.extension, (policy.logs.collector,), AllInbound())
    calls = (service for part in policy.reachable for service in part.services)
    if policy.tracing is not None and (served or any(call.protocol.is_http for call in calls)):
        tracing = policy.tracing
        yield _Judged(clusters.collector, (tracing.protocol, tracing.collector), MeshWide())


def _counting(port: InboundPort) -> tuple[RateLimitService, ...]:
    return port.rates.services if inbound_listeners.is_open(port) else ()


def _outbound(calling: OutboundInputs) -> Iterator[Piece | Pieces]:
    """Yield the pieces for a proxy's own calls, independent of the proxy's identity."""
    for services in calling.reachable:
        yield from _batches(calling.terms.of_destinations, services)
    yield from _own_listeners(calling)


def _own_listeners(calling: OutboundInputs) -> Iterator[Piece]:
    terms = replace(calling.terms, logs=AccessLogPolicy())
    bare = replace(calling, terms=terms, reachable=tuple(map(_of_listener, calling.reachable)))
    yield _Judged(
        outbound_listeners.outbound,
        (bare, calling.terms.logs),
        AllOutbound(),
        ahead=outbound_listeners.chain_by_chain,
    )
    if calling.interception is not InterceptionKind.TRANSPARENT:
        return
    if calling.passthrough or any(
        _goes_on(outside_range) for port in calling.outside for outside_range in port.ranges
    ):
        yield _Judged(clusters.passthrough, about=MeshWide())
    if calling.leaves:
        yield _Judged(clusters.blackhole, about=MeshWide())


def _outside(policy: ProxyPolicy) -> Iterator[Piece]:
    """Yield the pieces for routes and clusters of requests to hosts outside of the mesh."""
    ways: set[tuple[Port, ExternalHost | None, ConnectionLimits]] = set()
    for port in _ports_out(policy):
        for outside_range in port.ranges:
            if outside_range.hosts:
                yield _Judged(
                    routes.outside, (port.port, replace(outside_range, server_names=())), OutsideAccess()
                )
                result = (route for host in outside_range.hosts for route in host.routes)
                ways.update((port.port, route.host, route.limits) for route in result)
    for number, to, limits in sorted(ways, key=str):
        if to is not None:
            place = ExternalDestination(to, number, is_http=True, limits=limits)
            yield _Judged(
                clusters.external, (policy.headers, policy.resilience.reuse, place), OutsideAccess()
            )
    if any(to is None for _, to, _ in ways):
        yield _Judged(clusters.passthrough_http, (policy.headers, policy.resilience.reuse), MeshWide())


def _ports_out(policy: ProxyPolicy) -> tuple[OutsidePort, ...]:
    """Return the egress ports without the outbound listener's own, on which a call would loop."""
    return tuple(outside_port for outside_port in policy.outside if outside_port.port != names.OUTBOUND_PORT)


def _goes_on(outside_range: OutsideRange) -> bool:
    """Return whether connections to a range continue to their original destination."""
    return outside_range.connections or bool(outside_range.server_names)


def _batches(terms: MeshTerms, part: ReachableServices) -> Iterator[Pieces]:
    """Yield the pieces for callable services in batches; the name of a service determines its batch."""
    batches: dict[int, tuple[list[OutboundService], list[Destination]]] = {}
    for service in part.services:
        batches.setdefault(_batch(service.upstream), ([], []))[0].append(service)
    for destination in part.destinations:
        place = destination.service if isinstance(destination, ServiceDestination) else destination.host
        batches.setdefault(_batch(place), ([], []))[1].append(destination)
    for _, batch in sorted(batches.items()):
        yield Pieces(_reached, (terms, ReachableServices.from_sorted(*batch)))


def _batch(upstream: Upstream) -> int:
    return crc32(str(upstream).encode()) % BATCHES


def _reached(terms: MeshTerms, part: ReachableServices) -> Iterator[Pieces]:
    """Yield the pieces for routes, clusters and endpoints of callable services."""
    for service in part.services:
        if service.protocol.is_http:
            yield Pieces(_routes, (service, terms.resilience.retry))
    for destination in part.destinations:
        yield Pieces(_destination, (terms, destination))


@lru_cache(REMEMBERED)
def _routes(service: OutboundService, retry: RetryPolicy | None) -> tuple[Piece]:
    to, number = service.upstream, service.port
    calls = Calls(to, number) if isinstance(to, ServiceKey) else AllOutbound()
    split = replace(service, addresses=(), listen=(), escaped_slashes=EscapedSlashes.REJECT)
    return (_Judged(routes.outbound, (split, retry), calls),)


def _destination(terms: MeshTerms, destination: Destination) -> Iterator[Piece]:
    if isinstance(destination, ExternalDestination):
        yield _Judged(clusters.external, (terms.headers, terms.resilience.reuse, destination), AllOutbound())
        return
    # For HTTP, rules in the called proxy check the caller, so all callers share one cluster.
    caller = None if destination.is_http else destination.caller
    yield _cluster(terms, replace(destination, endpoints=(), caller=caller, near=None))
    if not destination.as_called:
        # Only the cluster needs the other fields, so all callers share one load assignment.
        places = ServiceDestination(
            destination.service,
            destination.target_port,
            is_http=False,
            server_name="",
            identities=(),
            endpoints=destination.endpoints,
            caller=destination.caller,
            near=destination.near,
            version=destination.version,
            plain=destination.plain,
            tls=destination.tls
            and replace(destination.tls, server_name="", names=(), roots=None, certificate=None),
        )
        reached = DestinationPolicy(destination.service, destination.target_port)
        yield _Judged(endpoints.assignment, about=reached, destinations=(places,))


@lru_cache(REMEMBERED)
def _cluster(terms: MeshTerms, place: ServiceDestination) -> Piece:
    reached = DestinationPolicy(place.service, place.target_port)
    return _Judged(clusters.destination, (terms, place), reached)


def _calling(policy: ProxyPolicy) -> OutboundInputs:
    """Return the inputs of the outbound listeners."""
    return OutboundInputs(
        policy.interception,
        policy.transparent.ipv6,
        policy.terms,
        policy.reachable,
        policy.passthrough,
        policy.closed,
        tuple(outside_port.without_routes for outside_port in _ports_out(policy)),
    )


def _port_of_listener(port: InboundPort) -> InboundPort:
    """Return an inbound port without the parts for the route configuration.

    Of an HTTP port only rules for callers from outside of the mesh remain, because the listener selects their
    connections. These rules stay complete, so that they remain the same units of policy. Of the request rates
    only the presence matters, and the counting services.
    """
    access, rates = port.access, port.rates
    if port.protocol.is_http:
        access = OnlyRules(tuple(rule for rule in access.rules if rule.from_outside))
        counted = rates.counted_requests
        rates = replace(
            rates,
            requests=_COUNTED if rates.of_requests else None,
            routes=(),
            counted_requests=None if counted is None else replace(counted, descriptors=()),
        )
    return replace(port, services=(), access=access, rates=rates, named=(), tapped=())


def _of_listener(part: ReachableServices) -> ReachableServices:
    """Return callable services with only the parts that a listener needs."""
    return ReachableServices.from_sorted(map(_service_of_listener, part.services))


@lru_cache(REMEMBERED)
def _service_of_listener(service: OutboundService) -> OutboundService:
    """Return a service without the parts for the route configuration."""
    if not service.protocol.is_http:
        return service
    placeholders = ((service.faulty, _FAULTY), (service.cross_origin, _CROSS_ORIGIN))
    return replace(service, table=tuple(entry for is_there, entry in placeholders if is_there))
