"""Ports of a gateway's proxies: route tables by host name, and the destinations of the routes.

A request is answered by the most specific listener at its port whose host name covers the request's, and by
no other. Of this listener's routes those with the most specific host name of their own decide first, and by
precedence among equals (gateway.networking.k8s.io, `hostnames` of HTTPRoute).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from catalog.policy.destinations import destinations_of
from catalog.policy.gateway_routes import edge_entries
from catalog.policy.outbound import is_plain, reaches_from_edge
from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.edge import EdgeHost, EdgePort
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.route_table import RouteEntry
from catalog.relations.gateways.attachment import routes_at_listener
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.groups import ProxyGroup
from catalog.store.gateway import route_of
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.gateways import Listener
from meshwright.mesh.gateway.hostnames import covers, most_specific, shared, specificity
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.cached_hash import SharedTuple
from meshwright.mesh.workload import Edge


@derived
def edge_ports(view: View, group: ProxyGroup) -> tuple[EdgePort, ...]:
    """Return the ports of a gateway's proxies, sorted by number; none for other proxies."""
    if not isinstance(group.interception, Edge) or group.workload is None:
        return ()
    gateway = PolicyKey(group.identity.namespace, group.interception.gateway)
    addresses = view.workloads[group.workload].addresses
    return tuple(
        EdgePort(
            gateway,
            number,
            _hosts(view, group.identity, gateway, number),
            tuple(SocketAddress(address, number) for address in addresses),
        )
        for number in sorted({listener.port for listener in _in_force(view, gateway)})
    )


@derived
def edge_destinations(view: View, group: ProxyGroup) -> SharedTuple[ServiceDestination]:
    """Return the destinations of the routes of a gateway's proxies, sorted, without endpoints."""
    backends = (backend for port in edge_ports(view, group) for backend in port.backends())
    return SharedTuple(
        _plain_if_outside(view, destination)
        for destination in destinations_of(view, group.identity, ((backend, True) for backend in backends))
    )


def _plain_if_outside(view: View, destination: ServiceDestination) -> ServiceDestination:
    ports = view.services[destination.service].ports_leading_to(destination.target_port)
    plain = any(is_plain(view, (destination.service, port)) for port in ports)
    return replace(destination, plain=True) if plain else destination


def _in_force(view: View, gateway: PolicyKey) -> Iterator[Listener]:
    return (verdict.listener for verdict in listener_verdicts(view, gateway) if verdict.accepted)


@derived
def _hosts(view: View, client: ServiceIdentity, gateway: PolicyKey, number: Port) -> tuple[EdgeHost, ...]:
    """Return the host names at a port with their route tables; proxies of one identity share them."""
    listeners = {
        listener.hostname: listener for listener in _in_force(view, gateway) if listener.port == number
    }
    routes = {hostname: _routes(view, gateway, listener) for hostname, listener in listeners.items()}
    names = {
        name
        for hostname, attached in routes.items()
        for route in attached
        for name in shared(hostname, route.hostnames)
        if most_specific(listeners, name) == hostname
    }
    # A listener without routes has its name too: a less specific listener must not answer for it.
    return tuple(
        EdgeHost(name, tuple(_table(view, client, number, routes[owner], name)))
        for name in sorted(names.union(listeners))
        if (owner := most_specific(listeners, name)) is not None
    )


def _routes(view: View, gateway: PolicyKey, listener: Listener) -> tuple[GatewayRoute, ...]:
    found = (route_of(view, key) for key in routes_at_listener(view, gateway, listener.name))
    return tuple(route for route in found if route is not None)


def _table(
    view: View, client: ServiceIdentity, number: Port, routes: Iterable[GatewayRoute], name: str
) -> Iterator[RouteEntry]:
    """Yield the entries for a host name: Envoy looks into one host alone, so wider routes are in it too."""
    by_pattern: dict[str, list[GatewayRoute]] = {}
    for route in routes:
        pattern = most_specific(route.hostnames or ("",), name)
        if pattern is not None and covers(pattern, name):
            by_pattern.setdefault(pattern, []).append(route)
    for pattern in sorted(by_pattern, key=specificity):
        yield from edge_entries(view, number, by_pattern[pattern], partial(reaches_from_edge, view, client))
