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
        """Return whether the rule covers a whole network; `None` is the space outside all ranges."""
        return not self.networks or (network is not None and self.ranges.holds(network))

    def is_for(self, name: str) -> bool:
        """Return whether one of the hosts equals a name or is a pattern for it."""
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
    numbers = frozenset(each.port for each in named)
    ours = [_of_part(view, part, numbers) for part in parts]
    shut = ((each.port, str(ip_network(each.address))) for each in closed if each.port in numbers)
    ours.append(_MeshAddresses(frozenset(shut), frozenset()))
    found = (_port_beside(each, ours, passthrough=passthrough) for each in named)
    return tuple(each for each in found if each.ranges)


@derived
def said(view: View, client: ServiceIdentity) -> tuple[OutsidePort, ...]:
    """Return the union of all Egresses for an identity, before the mesh's own addresses are removed.

    Sorted.
    """
    by_port: dict[Port, list[_EgressPortRule]] = {}
    for egress in egresses_by_source(view).found(client):
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
        by_protocol = {each: replace(whole, protocol=each) for each in EgressProtocol}
        for port in egress.ports:
            by_port.setdefault(port.number, []).append(by_protocol[port.protocol])
    return tuple(_ports(by_port))


def _ports(by_port: Mapping[Port, list[_EgressPortRule]]) -> Iterator[OutsidePort]:
    """Yield the allowed traffic by port; equal ports are computed once."""
    known: dict[tuple[int, ...], OutsidePort] = {}
    for number in sorted(by_port):
        found = by_port[number]
        same = tuple(map(id, found))
        if same not in known:
            known[same] = _port(number, found)
        yield replace(known[same], port=number)


@derived
def _of_part(view: View, part: ReachableServices, numbers: frozenset[Port]) -> _MeshAddresses:
    """Return the addresses of a part's services at these ports; the part may be shared by many groups."""
    del view
    found = [service for service in part.services if service.port in numbers]
    return _MeshAddresses(
        frozenset((each.port, str(ip_network(address))) for each in found for address in each.addresses),
        frozenset(each.port for each in found if each.protocol is Protocol.TCP_SERVER_FIRST),
    )


def _port_beside(port: OutsidePort, ours: Iterable[_MeshAddresses], *, passthrough: bool) -> OutsidePort:
    """Return the allowed traffic at a port without the mesh's own addresses."""
    taken = {address for part in ours for address in part.addresses}
    # If the server speaks first, proxy and client would wait for each other.
    waits = not port.server_first and not any(port.port in part.server_first for part in ours)
    ranges: list[OutsideRange] = []
    for each in port.ranges:
        networks = tuple(network for network in each.networks if (port.port, network) not in taken)
        # Without this check a range of mesh addresses only would turn into a range of all addresses.
        if each.networks and not networks:
            continue
        names, hosts = (each.server_names, each.hosts) if waits else ((), each.hosts)
        if passthrough and hosts:
            hosts = _with_elsewhere(hosts) if waits else ()
        if each.connections or names or hosts:
            ranges.append(OutsideRange(networks, each.connections, names, hosts))
    told_apart = passthrough and any(each.hosts for each in ranges)
    return replace(port, ranges=tuple(ranges), told_apart=told_apart)


def _with_elsewhere(hosts: tuple[OutsideHost, ...]) -> tuple[OutsideHost, ...]:
    return hosts if any(host.name == ANY_HOST for host in hosts) else (*hosts, _ELSEWHERE)


def _matches(view: View, egress: Egress) -> tuple[HTTPMatch, ...] | None:
    """Return the matches of an Egress, `None` for every request; a missing group has no matches."""
    if not egress.route_groups:
        return None
    rules = (Rule(RouteKind.HTTP, each) for each in egress.route_groups)
    return tuple(
        dict.fromkeys(match for rule in rules for match in rule_matches(view, egress.key.namespace, rule))
    )


def _port(number: Port, found: list[_EgressPortRule]) -> OutsidePort:
    # Each network gets all rules that cover it, because the proxy only looks for the narrowest one.
    networks = sorted({each for one in found for each in one.networks}, key=_network_order)
    by_holding: dict[tuple[bool, ...], list[str]] = {}
    for network in networks:
        holding = tuple(each.holds_in(network) for each in found)
        by_holding.setdefault(holding, []).append(str(network))
    by_outcome: dict[OutsideRange, list[str]] = {}
    for holding, there in by_holding.items():
        outcome = _outcome([each for each, holds in zip(found, holding, strict=True) if holds])
        by_outcome.setdefault(outcome, []).extend(there)
    everywhere = _outcome([each for each in found if each.holds_in(None)])
    ranges = (everywhere, *(replace(each, networks=tuple(where)) for each, where in by_outcome.items()))
    return OutsidePort(
        number,
        tuple(each for each in ranges if each.connections or each.server_names or each.hosts),
        server_first=any(each.protocol is EgressProtocol.TCP_SERVER_FIRST for each in found),
        by=tuple(sorted({each.by for each in found})),
    )


def _outcome(holding: list[_EgressPortRule]) -> OutsideRange:
    """Return the traffic allowed where all these rules hold, without the networks."""
    # A rule for TCP admits the bytes of every request as well, so the rules for hosts have no effect.
    if any(each.protocol.is_tcp for each in holding):
        return OutsideRange(connections=True)
    https = {host for each in holding if each.protocol is EgressProtocol.HTTPS for host in each.hosts}
    http = [each for each in holding if each.protocol is EgressProtocol.HTTP]
    return OutsideRange(
        server_names=(ANY_HOST,) if ANY_HOST in https else tuple(sorted(https)), hosts=tuple(_hosts(http))
    )


def _hosts(http: list[_EgressPortRule]) -> Iterator[OutsideHost]:
    """Yield the named hosts, each with the rules for its name and for patterns that cover it."""
    for name in sorted({host for each in http for host in each.hosts if each.networks or _in_dns(host)}):
        ways: dict[ExternalHost | None, list[_EgressPortRule]] = {}
        for each in http:
            if each.networks and each.is_for(name):
                ways.setdefault(None, []).append(each)
            elif not each.networks and name in each.names and _in_dns(name):
                ways.setdefault(ExternalHost(name), []).append(each)
        ordered = sorted(ways.items(), key=lambda way: way[0] is not None)
        yield OutsideHost(name, tuple(_routes(ordered)))


def _routes(ways: list[tuple[ExternalHost | None, list[_EgressPortRule]]]) -> Iterator[OutsideRoute]:
    """Yield the routes of a host: rules with ranges come before those by DNS."""
    for host, those in ways:
        if any(each.matches is None for each in those):
            yield OutsideRoute(None, host, _limits(host, those))
            return
        matches = tuple(dict.fromkeys(match for each in those for match in each.matches or ()))
        if matches:
            yield OutsideRoute(matches, host, _limits(host, those))


def _limits(host: ExternalHost | None, those: Iterable[_EgressPortRule]) -> ConnectionLimits:
    """Return the connection limits of a host; of several settings one counts, as for a service."""
    found = (each.setting for each in those if host is not None)
    named = (each for each in found if each is not None and host == ExternalHost(each.host))
    setting = min(named, key=precedence, default=None)
    return ConnectionLimits() if setting is None else setting.connections


def _in_dns(host: str) -> bool:
    return host != ANY_HOST and not is_wildcard(host)


def _network_order(network: Network) -> tuple[int, int, int]:
    return (network.version, int(network.network_address), network.prefixlen)
