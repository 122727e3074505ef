"""ProxyPolicy in, everything that its proxies are sent out (but secrets, which certificates make).

It is made in pieces. Each piece gets the policy without what it does not look at, so that whatever changes
there does not make it anew: endpoints touch load assignments only, rules and splits route configurations.
"""

from collections.abc import Iterator
from dataclasses import replace

from catalog.proxy import InboundPort, InterceptionKind, OnlyRules, OutboundService, ProxyPolicy
from sidecars.driver import Piece
from sidecars.envoy import clusters, endpoints, listeners, routes
from xds.resource import TYPES, Resource


def resources(policy: ProxyPolicy) -> tuple[Resource, ...]:
    """Return the listeners, routes, clusters and endpoints of a policy, sorted by type and name.

    Nothing is made that nothing refers to, and what a resource refers to is made, or is one of the secrets
    of the policy's identity and trust domain. Equal policies give equal bytes.
    """
    order = {type_url: position for position, type_url in enumerate(TYPES)}
    made = (resource for piece in pieces(policy) for resource in piece.resources())
    return tuple(sorted(made, key=lambda each: (order[each.type_url], each.name)))


def pieces(policy: ProxyPolicy) -> tuple[Piece, ...]:
    """Return what makes the resources of a policy."""
    return tuple(_pieces(policy))


def _pieces(policy: ProxyPolicy) -> Iterator[Piece]:
    proxy = replace(policy, inbound=(), outbound=(), destinations=())
    inbound, outbound = map(_port_of_listener, policy.inbound), map(_service_of_listener, policy.outbound)
    yield Piece(listeners.listeners, (replace(proxy, inbound=tuple(inbound), outbound=tuple(outbound)),))
    for port in policy.inbound:
        if listeners.is_open(port):
            behind = replace(port, services=(), access=OnlyRules(), listen=None)
            yield Piece(clusters.application, (proxy, behind))
            if port.protocol.is_http:
                yield Piece(routes.inbound, (proxy, replace(port, services=(), listen=None)))
    for service in policy.outbound:
        if service.protocol.is_http:
            yield Piece(routes.outbound, (replace(service, addresses=(), listen=()),))
    for destination in policy.destinations:
        yield Piece(clusters.destination, (proxy, replace(destination, endpoints=())))
        # Whose endpoints they are is the cluster's affair: all callers share one load assignment.
        bare = replace(destination, is_http=False, server_name="", identities=())
        yield Piece(endpoints.assignment, (bare,))
    if policy.egress and policy.interception is InterceptionKind.TRANSPARENT:
        yield Piece(clusters.passthrough)
        yield Piece(clusters.blackhole)


def _port_of_listener(port: InboundPort) -> InboundPort:
    """Leave out what stands in a port's route configuration."""
    access = OnlyRules() if port.protocol.is_http else port.access
    return replace(port, services=(), access=access)


def _service_of_listener(service: OutboundService) -> OutboundService:
    """Leave out what stands in a service's route configuration."""
    return replace(service, routes=()) if service.protocol.is_http else service
