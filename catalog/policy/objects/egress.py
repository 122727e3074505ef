"""Traffic out of the mesh, as allowed by Egress objects for a group of proxies.

For one port and one identity Egresses unite, each with separate hosts, ranges and matches.

| protocol | allowed | target |
|---|---|---|
| tcp, tcp-server-first | every connection to the ranges | original destination |
| https | TLS for one of the hosts, in the ranges | original destination |
| http without ranges | requests for the hosts | the host, by DNS |
| http with ranges | requests for the hosts, in the ranges | original destination |

Without hosts, https allows every name, and http every host in the ranges. A Host header can name any host,
whatever the called address is. A request therefore goes only to the address in DNS, or to ranges of the
Egress itself. In a range of tcp all data passes unread.

An Egress never covers the mesh itself (`catalog.relations.membership`): services of the mesh among the hosts,
and ranges of a single address of such a service, are left out. On a port where servers speak first, the proxy
cannot wait for the client. There https is not in force, because names cannot be read; and http is not in
force if all other traffic passes (`enableEgress`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Final

from catalog.policy.access import rule_matches
from catalog.policy.objects.limits import precedence
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.outside import OutsideHost, OutsidePort, OutsideRange, OutsideRoute
from catalog.policy.values.proxy import ReachableServices
from catalog.relations.membership import service_of_the_mesh
from catalog.relations.outside import setting_named
from catalog.store.osm import egresses_by_source
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.policies.egress import ANY_HOST, Egress, EgressProtocol, is_wildcard, patterns
from meshwright.mesh.policies.limits import ConnectionLimits, UpstreamTrafficSetting
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, RouteKind, Rule
from meshwright.mesh.service import ExternalHost, Protocol
from meshwright.mesh.values.networks import Network, NetworkSet

_ELSEWHERE: Final = OutsideHost(ANY_HOST, (OutsideRoute(None),))
"""With passthrough, requests for hosts without an Egress go to their original destination."""


@dataclass(frozen=True, slots=True)
class _EgressPortRule:
    """Rule of one Egress for one port: `hosts` without those of the mesh, `*` if the Egress names none.

    `ranges` and `names` are `networks` and `hosts` in a form for fast search.
    """

    by: PolicyKey
    protocol: EgressProtocol
    hosts: tuple[str, ...]
    networks: tuple[Network, ...]
    ranges: NetworkSet
    names: frozenset[str]
    matches: tuple[HTTPMatch, ...] | None
    setting: UpstreamTrafficSetting | None = None

    def holds_in(self, network: Network | None) -> bool:
        """Return whether the rule covers a whole network.

        The `network` `None` is the space outside all ranges.
        """
        return not self.networks or (network is not None and self.ranges.holds(network))

    def is_for(self, name: str) -> bool:
        """Return whether one of the rule's hosts equals a name or is a pattern for the name."""
        return any(pattern in self.names for pattern in patterns(name))


@dataclass(frozen=True, slots=True)
class _MeshAddresses:
    """Addresses of the mesh at some ports, as networks, and the ports where servers speak first."""

    addresses: frozenset[tuple[Port, str]]
    server_first: frozenset[Port]


def beside(
    view: View,
    named: tuple[OutsidePort, ...],
    parts: Iterable[ReachableServices],
    closed: Iterable[SocketAddress],
    *,
    passthrough: bool,
) -> tuple[OutsidePort, ...]:
    """Return `named` without addresses of the mesh: those of services in `parts`, and those in `closed`."""
    if not named:
        return ()
    numbers = frozenset(outside_port.port for outside_port in named)
    ours = [_of_part(view, part, numbers) for part in parts]
    shut = ((address.port, str(ip_network(address.address))) for address in closed if address.port in numbers)
    ours.append(_MeshAddresses(frozenset(shut), frozenset()))
    result = (_port_beside(outside_port, ours, passthrough=passthrough) for outside_port in named)
    return tuple(outside_port for outside_port in result if outside_port.ranges)


@derived
def union_of_egresses(view: View, client: ServiceIdentity) -> tuple[OutsidePort, ...]:
    """Return the union of all Egresses for an identity, before the mesh's own addresses are removed.

    Sorted.
    """
    by_port: dict[Port, list[_EgressPortRule]] = {}
    for egress in egresses_by_source(view).lookup(client):
        hosts = tuple(
            host for host in egress.hosts if service_of_the_mesh(view, host, client.namespace) is None
        )
        # An Egress without hosts is for all hosts, but one whose hosts all belong to the mesh is for none.
        hosts = hosts if egress.hosts else (ANY_HOST,)
        networks = tuple(map(ip_network, egress.networks))
        whole = _EgressPortRule(
            egress.key,
            EgressProtocol.HTTP,
            hosts,
            networks,
            NetworkSet(networks),
            frozenset(hosts),
            _matches(view, egress),
            setting_named(view, egress),
        )
        # One rule object per protocol, shared by all ports, so equal ports are recognised by identity.
        by_protocol = {protocol: replace(whole, protocol=protocol) for protocol in EgressProtocol}
        for port in egress.ports:
            by_port.setdefault(port.number, []).append(by_protocol[port.protocol])
    return tuple(_ports(by_port))


def _ports(by_port: Mapping[Port, list[_EgressPortRule]]) -> Iterator[OutsidePort]:
    """Yield the traffic allowed out of the mesh, by port; equal ports are computed once."""
    known: dict[tuple[int, ...], OutsidePort] = {}
    for number in sorted(by_port):
        egress_port_rules = by_port[number]
        # The ids stay unique, because `by_port` refers to all rules until the end.
        same = tuple(map(id, egress_port_rules))
        if same not in known:
            known[same] = _port(number, egress_port_rules)
        yield replace(known[same], port=number)


@derived
def _of_part(view: View, part: ReachableServices, numbers: frozenset[Port]) -> _MeshAddresses:
    """Return the addresses of a part's services at these ports; the part may be shared by many groups."""
    del view
    services = [service for service in part.services if service.port in numbers]
    return _MeshAddresses(
        frozenset(
            (service.port, str(ip_network(address))) for service in services for address in service.addresses
        ),
        frozenset(service.port for service in services if service.protocol is Protocol.TCP_SERVER_FIRST),
    )


def _port_beside(port: OutsidePort, ours: Iterable[_MeshAddresses], *, passthrough: bool) -> OutsidePort:
    """Return the traffic allowed out of the mesh at a port, without the mesh's own addresses."""
    taken = {address for part in ours for address in part.addresses}
    # If the server speaks first, proxy and client would wait for each other.
    waits = not port.server_first and not any(port.port in part.server_first for part in ours)
    ranges: list[OutsideRange] = []
    for outside_range in port.ranges:
        networks = tuple(network for network in outside_range.networks if (port.port, network) not in taken)
        # Without this check a range of mesh addresses only would turn into a range of all addresses.
        if outside_range.networks and not networks:
            continue
        names, hosts = (
            (outside_range.server_names, outside_range.hosts) if waits else ((), outside_range.hosts)
        )
        if passthrough and hosts:
            hosts = _with_elsewhere(hosts) if waits else ()
        if outside_range.connections or names or hosts:
            ranges.append(OutsideRange(networks, outside_range.connections, names, hosts))
    told_apart = passthrough and any(outside_range.hosts for outside_range in ranges)
    return replace(port, ranges=tuple(ranges), told_apart=told_apart)


def _with_elsewhere(hosts: tuple[OutsideHost, ...]) -> tuple[OutsideHost, ...]:
    return hosts if any(host.name == ANY_HOST for host in hosts) else (*hosts, _ELSEWHERE)


def _matches(view: View, egress: Egress) -> tuple[HTTPMatch, ...] | None:
    """Return the matches of an Egress, `None` for every request; a missing group has no matches."""
    if not egress.route_groups:
        return None
    rules = (Rule(RouteKind.HTTP, route_group) for route_group in egress.route_groups)
    return tuple(
        dict.fromkeys(match for rule in rules for match in rule_matches(view, egress.key.namespace, rule))
    )


def _port(number: Port, egress_port_rules: list[_EgressPortRule]) -> OutsidePort:
    # Each network gets all rules that cover it, because the proxy only looks for the narrowest one.
    networks = sorted({item for one in egress_port_rules for item in one.networks}, key=_network_order)
    by_holding: dict[tuple[bool, ...], list[str]] = {}
    for network in networks:
        holding = tuple(rule.holds_in(network) for rule in egress_port_rules)
        by_holding.setdefault(holding, []).append(str(network))
    by_outcome: dict[OutsideRange, list[str]] = {}
    for holding, there in by_holding.items():
        outcome = _outcome([rule for rule, holds in zip(egress_port_rules, holding, strict=True) if holds])
        by_outcome.setdefault(outcome, []).extend(there)
    everywhere = _outcome([rule for rule in egress_port_rules if rule.holds_in(None)])
    ranges = (
        everywhere,
        *(replace(outside_range, networks=tuple(where)) for outside_range, where in by_outcome.items()),
    )
    return OutsidePort(
        number,
        tuple(
            outside_range
            for outside_range in ranges
            if outside_range.connections or outside_range.server_names or outside_range.hosts
        ),
        server_first=any(rule.protocol is EgressProtocol.TCP_SERVER_FIRST for rule in egress_port_rules),
        by=tuple(sorted({rule.by for rule in egress_port_rules})),
    )


def _outcome(holding: list[_EgressPortRule]) -> OutsideRange:
    """Return the traffic allowed at addresses where all these rules apply, without the networks."""
    # A rule for TCP admits the bytes of every request as well, so the rules for hosts have no effect.
    if any(rule.protocol.is_tcp for rule in holding):
        return OutsideRange(connections=True)
    https = {host for rule in holding if rule.protocol is EgressProtocol.HTTPS for host in rule.hosts}
    http = [rule for rule in holding if rule.protocol is EgressProtocol.HTTP]
    return OutsideRange(
        server_names=(ANY_HOST,) if ANY_HOST in https else tuple(sorted(https)), hosts=tuple(_hosts(http))
    )


def _hosts(http: list[_EgressPortRule]) -> Iterator[OutsideHost]:
    """Yield the named hosts, each with the rules for its name and for patterns that cover it."""
    for name in sorted({host for rule in http for host in rule.hosts if rule.networks or _in_dns(host)}):
        ways: dict[ExternalHost | None, list[_EgressPortRule]] = {}
        for rule in http:
            if rule.networks and rule.is_for(name):
                ways.setdefault(None, []).append(rule)
            elif not rule.networks and name in rule.names and _in_dns(name):
                ways.setdefault(ExternalHost(name), []).append(rule)
        ordered = sorted(ways.items(), key=lambda way: way[0] is not None)
        yield OutsideHost(name, tuple(_routes(ordered)))


def _routes(ways: list[tuple[ExternalHost | None, list[_EgressPortRule]]]) -> Iterator[OutsideRoute]:
    """Yield the routes of a host outside the mesh: rules with ranges before the rules by DNS."""
    for host, those in ways:
        # A route for all requests is the last one, because later routes would get no requests.
        if any(rule.matches is None for rule in those):
            yield OutsideRoute(None, host, _limits(host, those))
            return
        matches = tuple(dict.fromkeys(match for rule in those for match in rule.matches or ()))
        if matches:
            yield OutsideRoute(matches, host, _limits(host, those))


def _limits(host: ExternalHost | None, those: Iterable[_EgressPortRule]) -> ConnectionLimits:
    """Return the connection limits of a host; of several settings one counts, as for a service."""
    result = (rule.setting for rule in those if host is not None)
    named = (setting for setting in result if setting is not None and host == ExternalHost(setting.host))
    setting = min(named, key=precedence, default=None)
    return ConnectionLimits() if setting is None else setting.connections


def _in_dns(host: str) -> bool:
    return host != ANY_HOST and not is_wildcard(host)


def _network_order(network: Network) -> tuple[int, int, int]:
    return (network.version, int(network.network_address), network.prefixlen)
