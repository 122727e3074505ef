"""ProxyPolicy in, everything that its proxies are sent out (but secrets, which certificates make)."""

from collections.abc import Iterator

from catalog.proxy import InterceptionKind, ProxyPolicy
from sidecars.envoy import clusters, endpoints, listeners, routes
from xds.resource import TYPES, Resource


def resources(policy: ProxyPolicy) -> tuple[Resource, ...]:
    """Return the listeners, routes, clusters and endpoints of a policy, sorted by type and name.

    Nothing is made that nothing refers to, and what a resource refers to is made, or is one of the secrets
    of the policy's identity and trust domain. Equal policies give equal bytes.
    """
    order = {type_url: position for position, type_url in enumerate(TYPES)}
    return tuple(sorted(_all(policy), key=lambda each: (order[each.type_url], each.name)))


def _all(policy: ProxyPolicy) -> Iterator[Resource]:
    yield from listeners.listeners(policy)
    for port in policy.inbound:
        if listeners.is_open(port):
            yield clusters.application(policy, port)
            if port.protocol.is_http:
                yield routes.inbound(policy, port)
    for service in policy.outbound:
        if service.protocol.is_http:
            yield routes.outbound(service)
    for destination in policy.destinations:
        yield clusters.destination(policy, destination)
        yield endpoints.assignment(destination)
    if policy.egress and policy.interception is InterceptionKind.TRANSPARENT:
        yield clusters.passthrough()
        yield clusters.blackhole()
