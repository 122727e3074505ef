"""Ports of a gateway's proxies: filter chains with route tables or backends, and their destinations.

A request is answered by the most specific listener at its port whose host name covers the request's, and by
no other. Of this listener's routes those with the most specific host name of their own decide first, and by
precedence among equals (gateway.networking.k8s.io, `hostnames` of HTTPRoute). TLS connections are forwarded
alike by their server name, and connections at a TCP listener by the oldest route. For example, a connection
for `cart.shop.example` gets the route for `*.shop.example` in the absence of a route for the name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Final

from catalog.policy.destinations import destinations_of
from catalog.policy.gateway_routes import edge_connections, edge_entries
from catalog.policy.outbound import is_plain, reaches_from_edge
from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.edge import EdgeAuthorities, EdgeChain, EdgeHost, EdgePort, EdgeTls
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.route_actions import Answer
from catalog.policy.values.route_table import RouteEntry
from catalog.relations.gateways.client_certificates import client_certificate
from catalog.relations.gateways.client_traffic import PortTraffic, client_traffic
from catalog.relations.gateways.client_validation import client_authorities
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.route_listeners import routes_at_listener
from catalog.relations.gateways.verdicts import ListenerVerdict
from catalog.relations.groups import ProxyGroup
from catalog.store.gateway import route_of, tls_secrets
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.gateways import ListenerProtocol
from meshwright.mesh.gateway.hostnames import covering, most_specific, shared
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.gateway.secrets import TlsSecret
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.policies.client_traffic import DEFAULTS, PORT_DEFAULTS, ClientSettings, PortSettings
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.cached_hash import SharedTuple
from meshwright.mesh.workload import Edge

_MISDIRECTED: Final = (RouteEntry((), Answer(HTTPStatus.MISDIRECTED_REQUEST)),)
"""Table of a host name for which another listener at the port has the certificate."""


@dataclass(frozen=True, slots=True)
class _PortInForce:
    """The listeners in force at a port by host name, with their routes, for proxies of one identity."""

    view: View
    client: ServiceIdentity
    number: Port
    listeners: Mapping[str, ListenerVerdict]
    routes: Mapping[str, tuple[GatewayRoute, ...]]
    by_own_hostname: Mapping[str, Mapping[str, tuple[tuple[int, GatewayRoute], ...]]]
    """For each listener its routes by each host name of their own, with their places in `routes`."""

    traffic: PortTraffic | None = None

    def settings(self, hostname: str) -> ClientSettings:
        """Return the settings for the clients of a listener."""
        policy = None if self.traffic is None else self.traffic.policy_of(self.listeners[hostname])
        return DEFAULTS if policy is None else policy.settings

    def owner(self, name: str) -> str | None:
        """Return the host name of the answering listener for a name."""
        return most_specific(self.listeners, name)

    def names(self, hostname: str) -> set[str]:
        """Return the names of a listener: the own one, and those of the attached routes.

        A listener without routes has its name too, because a wider listener must not answer for it.
        """
        return {hostname}.union(
            name
            for route in self.routes[hostname]
            for name in shared(hostname, route.hostnames)
            if self.owner(name) == hostname
        )

    def deciding(self, hostname: str, name: str) -> Iterator[list[GatewayRoute]]:
        """Yield the routes of a listener for a name in groups with one host name, the most specific first."""
        # A look at all routes for the name of each would cost the square of their number.
        routes, seen = self.by_own_hostname[hostname], set[int]()
        for pattern in covering(name):
            group = {place: route for place, route in routes.get(pattern, ()) if place not in seen}
            if group:
                seen.update(group)
                yield list(group.values())


def edge_ports(view: View, group: ProxyGroup) -> tuple[EdgePort, ...]:
    """Return the ports of a gateway's proxies, sorted by number; none for other proxies."""
    # Nearly every proxy is a sidecar, and then nothing is kept for it.
    return ports_of_gateway(view, group) if isinstance(group.interception, Edge) else ()


@derived
def ports_of_gateway(view: View, group: ProxyGroup) -> tuple[EdgePort, ...]:
    """Return the ports of a gateway's proxies, sorted by number."""
    if not isinstance(group.interception, Edge) or group.workload is None:
        return ()
    gateway = PolicyKey(group.identity.namespace, group.interception.gateway)
    addresses = view.workloads[group.workload].addresses
    traffic = client_traffic(view, gateway)
    return tuple(
        EdgePort(
            gateway,
            number,
            _chains(view, group.identity, gateway, number),
            tuple(SocketAddress(address, number) for address in addresses),
            _port_settings(traffic.get(number)),
        )
        for number in sorted({verdict.listener.port for verdict in _in_force(view, gateway)})
    )


@derived
def edge_destinations(view: View, group: ProxyGroup) -> SharedTuple[ServiceDestination]:
    """Return the destinations of the routes of a gateway's proxies, sorted, without endpoints."""
    called = (
        (backend, chain.hosts is not None)
        for port in edge_ports(view, group)
        for chain in port.chains
        for backend in chain.backends()
    )
    shown = certificate_for_backends(view, group)
    return SharedTuple(
        _with_certificate(_plain_if_outside(view, destination), shown)
        for destination in destinations_of(view, group.identity, called)
    )


def certificate_for_backends(view: View, group: ProxyGroup) -> PolicyKey | None:
    """Return the Secret with the client certificate of a gateway's proxies; None without a usable one."""
    if not isinstance(group.interception, Edge):
        return None
    found = client_certificate(view, PolicyKey(group.identity.namespace, group.interception.gateway))
    return found if isinstance(found, PolicyKey) else None


def _with_certificate(destination: ServiceDestination, shown: PolicyKey | None) -> ServiceDestination:
    """Return a destination with the client certificate in the TLS of a BackendTLSPolicy, if it has any."""
    if destination.tls is None or shown is None:
        return destination
    return replace(destination, tls=replace(destination.tls, certificate=shown))


def _plain_if_outside(view: View, destination: ServiceDestination) -> ServiceDestination:
    ports = view.services[destination.service].ports_leading_to(destination.target_port)
    plain = any(is_plain(view, (destination.service, port)) for port in ports)
    return replace(destination, plain=True) if plain else destination


def edge_secrets(view: View, group: ProxyGroup) -> tuple[TlsSecret, ...]:
    """Return the certificates of a gateway's proxies with their keys, sorted; none for other proxies."""
    return secrets_of_gateway(view, group) if isinstance(group.interception, Edge) else ()


@derived
def secrets_of_gateway(view: View, group: ProxyGroup) -> tuple[TlsSecret, ...]:
    """Return the certificates of a gateway's proxies with their keys, sorted by name.

    The client certificate is one of them only if a backend gets it.
    """
    chains = (chain.tls for port in edge_ports(view, group) for chain in port.chains)
    named = {key for shown in chains if shown is not None for key in shown.certificates}
    backends = (destination.tls for destination in edge_destinations(view, group))
    named |= {tls.certificate for tls in backends if tls is not None and tls.certificate is not None}
    found = (tls_secrets(view).get(key) for key in sorted(named))
    return tuple(secret for secret in found if secret is not None)


def edge_authorities(view: View, group: ProxyGroup) -> tuple[EdgeAuthorities, ...]:
    """Return the CA certificates for clients of a gateway's ports, sorted; none for other proxies."""
    return authorities_of_gateway(view, group) if isinstance(group.interception, Edge) else ()


@derived
def authorities_of_gateway(view: View, group: ProxyGroup) -> tuple[EdgeAuthorities, ...]:
    """Return the CA certificates for clients of a gateway's ports, sorted by port."""
    ports = (
        port
        for port in edge_ports(view, group)
        if any(chain.tls is not None and chain.tls.clients is not None for chain in port.chains)
    )
    found = ((port, client_authorities(view, port.gateway, port.port)) for port in ports)
    return tuple(
        EdgeAuthorities(port.gateway, port.port, authorities.pem)
        for port, authorities in found
        if authorities is not None
    )


def _in_force(view: View, gateway: PolicyKey) -> Iterator[ListenerVerdict]:
    return (verdict for verdict in listener_verdicts(view, gateway) if verdict.in_force)


@derived
def _chains(view: View, client: ServiceIdentity, gateway: PolicyKey, number: Port) -> tuple[EdgeChain, ...]:
    """Return the filter chains of a port; proxies of one identity share them."""
    listeners = {
        verdict.listener.hostname: verdict
        for verdict in _in_force(view, gateway)
        if verdict.listener.port == number
    }
    routes = {hostname: _routes(view, gateway, verdict) for hostname, verdict in listeners.items()}
    named = {hostname: _by_own_hostname(items) for hostname, items in routes.items()}
    traffic = client_traffic(view, gateway).get(number)
    port = _PortInForce(view, client, number, listeners, routes, named, traffic)
    return tuple(sorted(_chains_of(port), key=_server_name))


def _by_own_hostname(
    routes: Iterable[GatewayRoute],
) -> Mapping[str, tuple[tuple[int, GatewayRoute], ...]]:
    result: dict[str, list[tuple[int, GatewayRoute]]] = {}
    for place, route in enumerate(routes):
        for name in dict.fromkeys(route.hostnames or ("",)):
            result.setdefault(name, []).append((place, route))
    return {name: tuple(items) for name, items in result.items()}


def _port_settings(traffic: PortTraffic | None) -> PortSettings:
    return PORT_DEFAULTS if traffic is None or traffic.port is None else traffic.port.port


def _chains_of(port: _PortInForce) -> Iterator[EdgeChain]:
    plain: list[EdgeHost] = []
    settings = DEFAULTS
    for hostname, verdict in port.listeners.items():
        match verdict.listener.protocol:
            case ListenerProtocol.HTTP:
                plain += _hosts(port, hostname)
                settings = port.settings(hostname)
            case ListenerProtocol.TCP:
                yield EdgeChain(entry=_oldest(port, port.routes[hostname]), settings=port.settings(hostname))
            case ListenerProtocol.HTTPS:
                hosts = _sorted((*_hosts(port, hostname), *_misdirected(port, hostname)))
                shown, settings = _tls(verdict, hostname), port.settings(hostname)
                yield EdgeChain(shown, hosts=hosts, settings=settings)
            case ListenerProtocol.TLS:
                for name in port.names(hostname):
                    yield _connections(port, hostname, name)
            case _:  # a listener of another protocol is not in force
                continue
    if plain:
        # These listeners share their connections, and so their settings.
        yield EdgeChain(hosts=_sorted(plain), settings=settings)


def _connections(port: _PortInForce, hostname: str, name: str) -> EdgeChain:
    """Return the chain for connections with a server name; they are closed without a route."""
    first = next(port.deciding(hostname, name), [])
    shown = _tls(port.listeners[hostname], name)
    return EdgeChain(shown, entry=_oldest(port, first), settings=port.settings(hostname))


def _tls(verdict: ListenerVerdict, name: str) -> EdgeTls:
    return EdgeTls(name, verdict.certificates, None if verdict.clients is None else verdict.clients.mode)


def _routes(view: View, gateway: PolicyKey, verdict: ListenerVerdict) -> tuple[GatewayRoute, ...]:
    attached = routes_at_listener(view, gateway, verdict.listener.name, verdict.listener_set)
    found = (route_of(view, key) for key in attached)
    return tuple(route for route in found if route is not None)


def _hosts(port: _PortInForce, hostname: str) -> Iterator[EdgeHost]:
    """Yield the host names of a listener with their route tables."""
    for name in port.names(hostname):
        yield EdgeHost(name, tuple(_table(port, port.deciding(hostname, name))))


def _misdirected(port: _PortInForce, hostname: str) -> Iterator[EdgeHost]:
    """Yield the host names of other listeners at a port, with the answer 421 (RFC 9110, 15.5.20)."""
    # A client with HTTP/2 uses a connection for every name in the certificate. With 421 it opens another one.
    for other in port.listeners:
        if other != hostname:
            yield EdgeHost(other, _MISDIRECTED)


def _table(port: _PortInForce, deciding: Iterable[list[GatewayRoute]]) -> Iterator[RouteEntry]:
    """Yield the entries for a host name: Envoy looks into one host alone, so wider routes are in it too."""
    for routes in deciding:
        yield from edge_entries(
            port.view, port.number, routes, partial(reaches_from_edge, port.view, port.client)
        )


def _oldest(port: _PortInForce, routes: Iterable[GatewayRoute]) -> RouteEntry | None:
    return edge_connections(
        port.view, port.number, routes, partial(reaches_from_edge, port.view, port.client)
    )


def _server_name(chain: EdgeChain) -> str:
    return "" if chain.tls is None else chain.tls.server_name


def _sorted(hosts: Iterable[EdgeHost]) -> tuple[EdgeHost, ...]:
    return tuple(sorted(hosts, key=lambda host: host.hostname))
