"""What Egress objects let a group of proxies send out of the mesh.

Of one port, for one identity: Egresses unite, each with its own hosts, ranges and matches.

| protocol | what passes | where it goes |
|---|---|---|
| tcp, tcp-server-first | every connection to its ranges | where it was going |
| https | TLS that asks for one of its hosts, in its ranges | where it was going |
| http without ranges | requests for its hosts | to the host, as the DNS knows it |
| http with ranges | requests for its hosts, in its ranges | where they were going |

Without hosts, https is for every name, and http for every host in its ranges. A Host header may name any
host, whatever address was called; so it leads where the DNS says, or to addresses that the Egress itself
names, and to no others. In a range of tcp all that is sent passes, and nothing is looked at.

An Egress never covers the mesh itself (`catalog.relations.membership`): left out are hosts that are names of
its services, and ranges that are one address of a service. Where a server speaks first nothing waits for a
client: there https is not in force, because its names cannot be read; nor is http where all else passes as
well (`enableEgress`).
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
"""With passthrough: requests for hosts that no Egress names go on to where they were going."""


@dataclass(frozen=True, slots=True)
class _EgressPortRule:
    """What one Egress says of one port: `hosts` without those of the mesh, `*` where it names none.

    `ranges` and `names` are `networks` and `hosts` once more, to be searched.
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
        """Say whether it holds in all of a network; None is wherever no range says anything."""
        return not self.networks or (network is not None and self.ranges.holds(network))

    def is_for(self, name: str) -> bool:
        """Say whether one of its hosts is a name, or a pattern that covers it."""
        return any(pattern in self.names for pattern in patterns(name))


@dataclass(frozen=True, slots=True)
class _MeshAddresses:
    """What of some ports is the mesh's: single addresses as networks, and ports where servers speak first."""

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
    """Return what Egresses have `named`, but for what is the mesh's: in these parts, or closed."""
    if not named:
        return ()
    numbers = frozenset(each.port for each in named)
    ours = [_of_part(view, each, numbers) for each in parts]
    shut = ((each.port, str(ip_network(each.address))) for each in closed if each.port in numbers)
    ours.append(_MeshAddresses(frozenset(shut), frozenset()))
    found = (_port_beside(each, ours, passthrough=passthrough) for each in named)
    return tuple(each for each in found if each.ranges)


@derived
def said(view: View, client: ServiceIdentity) -> tuple[OutsidePort, ...]:
    """Return what all Egresses say of an identity, whatever services of the mesh it may call; sorted."""
    by_port: dict[Port, list[_EgressPortRule]] = {}
    for egress in egresses_by_source(view).found(client):
        hosts = tuple(
            each for each in egress.hosts if service_of_the_mesh(view, each, client.namespace) is None
        )
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
        by_protocol = {each: replace(whole, protocol=each) for each in EgressProtocol}
        for port in egress.ports:
            by_port.setdefault(port.number, []).append(by_protocol[port.protocol])
    return tuple(_ports(by_port))


def _ports(by_port: Mapping[Port, list[_EgressPortRule]]) -> Iterator[OutsidePort]:
    """Yield what may be called, by port; what is the same for several ports is found once."""
    known: dict[tuple[int, ...], OutsidePort] = {}
    for number in sorted(by_port):
        found = by_port[number]
        same = tuple(map(id, found))
        if same not in known:
            known[same] = _port(number, found)
        yield replace(known[same], port=number)


@derived
def _of_part(view: View, part: ReachableServices, numbers: frozenset[Port]) -> _MeshAddresses:
    """Return what of these ports the services of a part have, which many groups may share."""
    del view
    found = [each for each in part.services if each.port in numbers]
    return _MeshAddresses(
        frozenset((each.port, str(ip_network(address))) for each in found for address in each.addresses),
        frozenset(each.port for each in found if each.protocol is Protocol.TCP_SERVER_FIRST),
    )


def _port_beside(port: OutsidePort, ours: Iterable[_MeshAddresses], *, passthrough: bool) -> OutsidePort:
    """Return what may be called at a port beside what the mesh has there."""
    taken = {each for part in ours for each in part.addresses}
    waits = not port.server_first and not any(port.port in part.server_first for part in ours)
    ranges: list[OutsideRange] = []
    for each in port.ranges:
        networks = tuple(network for network in each.networks if (port.port, network) not in taken)
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
    return hosts if any(each.name == ANY_HOST for each in hosts) else (*hosts, _ELSEWHERE)


def _matches(view: View, egress: Egress) -> tuple[HTTPMatch, ...] | None:
    """Return the matches of an Egress, None for every request; a group that is not there has none."""
    if not egress.route_groups:
        return None
    rules = (Rule(RouteKind.HTTP, each) for each in egress.route_groups)
    return tuple(
        dict.fromkeys(match for rule in rules for match in rule_matches(view, egress.key.namespace, rule))
    )


def _port(number: Port, found: list[_EgressPortRule]) -> OutsidePort:
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
    """Return what passes where all of this holds; for which networks that is, is not said."""
    if any(each.protocol.is_tcp for each in holding):
        return OutsideRange(connections=True)
    https = {host for each in holding if each.protocol is EgressProtocol.HTTPS for host in each.hosts}
    http = [each for each in holding if each.protocol is EgressProtocol.HTTP]
    return OutsideRange(
        server_names=(ANY_HOST,) if ANY_HOST in https else tuple(sorted(https)), hosts=tuple(_hosts(http))
    )


def _hosts(http: list[_EgressPortRule]) -> Iterator[OutsideHost]:
    """Yield the hosts that are named; each has what is said of all names that it is among."""
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
    """Yield the routes of a host: what ranges bound comes before what the DNS says."""
    for host, those in ways:
        if any(each.matches is None for each in those):
            yield OutsideRoute(None, host, _limits(host, those))
            return
        matches = tuple(dict.fromkeys(match for each in those for match in each.matches or ()))
        if matches:
            yield OutsideRoute(matches, host, _limits(host, those))


def _limits(host: ExternalHost | None, those: Iterable[_EgressPortRule]) -> ConnectionLimits:
    """Return what goes to a host at once; of several settings one counts, as for a service."""
    found = (each.setting for each in those if host is not None)
    named = (each for each in found if each is not None and host == ExternalHost(each.host))
    setting = min(named, key=precedence, default=None)
    return ConnectionLimits() if setting is None else setting.connections


def _in_dns(host: str) -> bool:
    return host != ANY_HOST and not is_wildcard(host)


def _network_order(network: Network) -> tuple[int, int, int]:
    return (network.version, int(network.network_address), network.prefixlen)
