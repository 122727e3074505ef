"""ProxyPolicy in, everything that its proxies are sent out (but secrets, which certificates make).

It is made in pieces. Each piece gets the policy without what it does not look at, so that whatever changes
there does not make it anew: endpoints are given to load assignments alone, rules and splits touch route
configurations.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from catalog.policy.provenance import (
    Admitting,
    AllInbound,
    AllOutbound,
    Application,
    Calls,
    MeshWide,
    Reached,
)
from catalog.policy.proxy import (
    ExternalDestination,
    InboundPort,
    InterceptionKind,
    OnlyRules,
    OutboundService,
    ProxyPolicy,
)
from catalog.policy.shared import Shared
from mesh.service import EscapedSlashes, ServiceKey
from sidecars.contract.driver import Piece
from sidecars.envoy import clusters, endpoints, inbound_listeners, outbound_listeners, routes
from sidecars.envoy.judging import judged
from sidecars.envoy.outbound_listeners import Calling

_Judged = partial(Piece, faults=judged)


def pieces(policy: ProxyPolicy) -> tuple[Piece, ...]:
    """Return what makes the listeners, routes, clusters and endpoints of a policy.

    Nothing is made that nothing refers to, and what a resource refers to is made, or is one of the secrets
    of the policy's identity and trust domain. Equal policies give equal bytes.
    """
    return tuple(_pieces(policy))


def _pieces(policy: ProxyPolicy) -> Iterator[Piece]:
    terms, headers, primary = policy.terms, policy.headers, policy.primary
    # Egress is the outbound listener's affair, TPROXY the inbound one's.
    inbound = tuple(map(_port_of_listener, policy.inbound))
    called = replace(policy, inbound=inbound, reachable=(), passthrough=False, closed=Shared())
    yield _Judged(inbound_listeners.inbound, (called,), AllInbound())
    yield _Judged(outbound_listeners.outbound, (_calling(policy),), AllOutbound())
    for port in policy.inbound:
        if inbound_listeners.is_open(port):
            bare = replace(port, services=(), listen=None, escaped_slashes=EscapedSlashes.REJECT)
            behind = replace(bare, access=OnlyRules())
            yield _Judged(clusters.application, (headers, primary, behind), Application(port.services))
            if port.protocol.is_http:
                admitting = Admitting(port.port, port.protocol, port.services)
                yield _Judged(routes.inbound, (policy.trust_domain, primary, bare), admitting)
    for service in policy.outbound:
        if service.protocol.is_http:
            to, number = service.upstream, service.port
            calls = Calls(to, number) if isinstance(to, ServiceKey) else AllOutbound()
            split = replace(service, addresses=(), listen=(), escaped_slashes=EscapedSlashes.REJECT)
            yield _Judged(routes.outbound, (split,), calls)
    for destination in policy.destinations:
        if isinstance(destination, ExternalDestination):
            yield _Judged(clusters.external, (headers, destination), AllOutbound())
            continue
        reached = Reached(destination.service, destination.target_port)
        # Of HTTP it is the rules that ask who calls: all callers share one cluster.
        caller = None if destination.is_http else destination.caller
        place = replace(destination, endpoints=(), caller=caller)
        yield _Judged(clusters.destination, (terms, place), reached)
        if destination.as_called:
            continue
        # Whose endpoints they are is the cluster's affair: all callers share one load assignment.
        places = replace(destination, is_http=False, server_name="", identities=())
        yield _Judged(endpoints.assignment, about=reached, destinations=(places,))
    if policy.passthrough and policy.interception is InterceptionKind.TRANSPARENT:
        yield _Judged(clusters.passthrough, about=MeshWide())
        yield _Judged(clusters.blackhole, about=MeshWide())


def _calling(policy: ProxyPolicy) -> Calling:
    """Return what the listeners for a proxy's own calls are made from."""
    return Calling(
        policy.interception,
        policy.transparent.ipv6,
        policy.terms,
        tuple(map(_service_of_listener, policy.outbound)),
        policy.passthrough,
        policy.closed,
    )


def _port_of_listener(port: InboundPort) -> InboundPort:
    """Leave out what stands in a port's route configuration: of HTTP, all rules but those from outside.

    Connections of outsiders are chosen by the listener. Their rules are whole here, to be the same units.
    """
    access = port.access
    if port.protocol.is_http:
        access = OnlyRules(tuple(each for each in access.rules if each.from_outside))
    return replace(port, services=(), access=access)


def _service_of_listener(service: OutboundService) -> OutboundService:
    """Leave out what stands in a service's route configuration."""
    return replace(service, routes=()) if service.protocol.is_http else service
