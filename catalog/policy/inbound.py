"""Inbound policy: the ports of a workload, and the callers admitted at each."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from catalog.policy.access import FullAccess, MatchingAccess, NoAccess, grant, rule_matches
from catalog.policy.objects.authorization import port_authorizer
from catalog.policy.objects.ingress import ingress_rules
from catalog.policy.objects.limits import rate_limits
from catalog.policy.objects.mutual_tls import plain_rule
from catalog.policy.values.inbound import (
    Access,
    AccessRule,
    EveryoneInTheMesh,
    InboundPort,
    NamedMatch,
    OnlyRules,
    admitted,
)
from catalog.policy.values.interception import SocketAddress
from catalog.relations.backends.ports import served
from catalog.relations.conflicts import conflicts
from catalog.relations.groups import ProxyGroup
from catalog.relations.permissive import is_permissive
from catalog.store.smi import targets_by_destination
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import EncryptedRange
from meshwright.mesh.policies.limits import RateLimits
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, RouteKind
from meshwright.mesh.service import EscapedSlashes, Protocol, Service
from meshwright.mesh.tap import Tapped
from meshwright.mesh.workload import Edge, Explicit, Transparent

LOOPBACK: Final = IpAddress("127.0.0.1")
LOOPBACK_IPV6: Final = IpAddress("::1")
"""Addresses of an application behind transparent interception.

It listens on IPv4 loopback or on all addresses. If IPv6 is redirected too, it may listen on IPv6 only, as a
web server at `[::]:80` does.
"""


@derived
def inbound_ports(view: View, group: ProxyGroup) -> tuple[InboundPort, ...]:
    """Return the inbound ports of a group of proxies, sorted by number.

    They are the target ports of its services. A pure client in explicit interception and a gateway have none.
    A port held by another listener is left out (`catalog.relations.conflicts`).
    """
    if isinstance(group.interception, Edge):
        return ()
    if isinstance(group.interception, Explicit) and group.interception.application_address is None:
        return ()
    refused = refused_ports(view, group)
    services = [view.services[key] for key in group.services if key in view.services]
    return tuple(
        _port(view, group, number, protocol, behind)
        for number, protocol, behind in served(services, group.ports, group.given_ports)
        if number not in refused
    )


def _port(
    view: View, group: ProxyGroup, number: Port, protocol: Protocol, behind: tuple[Service, ...]
) -> InboundPort:
    services = tuple(service.key for service in behind)
    outsiders = ingress_rules(view, services, number) if protocol.is_http else ()
    if (plain := plain_rule(view, group.identity, number, protocol)) is not None:
        outsiders = (*outsiders, plain)
    result = access(view, group.identity, number, protocol)
    if outsiders:
        result = replace(result, rules=(*result.rules, *outsiders))
    # Callers without a certificate are distinguished from those of the mesh by the requested server name.
    told_apart = services if admitted(result, EncryptedRange) else ()
    return InboundPort(
        port=number,
        protocol=protocol,
        services=services,
        application=_application(group, number),
        otherwise=_otherwise(group, number),
        access=result,
        listen=_listen(group, number),
        escaped_slashes=_escaped_slashes(protocol, behind),
        rates=_rates(view, protocol, behind),
        asked=port_authorizer(view, group.identity, number, protocol),
        mesh_names=tuple(service_key.fqdn(view.settings.cluster_domain) for service_key in told_apart),
        named=_named(view, group.identity, number, protocol),
        tapped=_tapped(view, behind) if protocol.is_http else (),
    )


@derived
def access(view: View, identity: ServiceIdentity, port: Port, protocol: Protocol) -> Access:
    """Return the callers of the mesh admitted at a port of an identity's workloads.

    They are the union over all TrafficTargets with this destination.
    """
    if is_permissive(view, identity.namespace):
        return EveryoneInTheMesh()
    return OnlyRules(tuple(_rules(view, identity, port, protocol)))


def refused_ports(view: View, group: ProxyGroup) -> frozenset[Port]:
    """Return the inbound ports that a workload with explicit interception cannot bind.

    Another listener already has the address and port.
    """
    if group.workload is None:
        return frozenset()
    held = conflicts(view, group.workload)
    # A negative index is an inbound port; `catalog.policy.reachable` leaves out the others, the upstreams.
    return frozenset(conflict.refused.port for conflict in held if conflict.refused.index < 0)


def _rules(view: View, identity: ServiceIdentity, port: Port, protocol: Protocol) -> Iterator[AccessRule]:
    for target in targets_by_destination(view).lookup(identity):
        callers = tuple(sorted(set(target.sources)))
        if not callers:
            continue
        if callers == target.sources:
            callers = target.sources  # one object, because a large mesh has tens of thousands of targets
        by = ObjectKey.from_name(TRAFFIC_TARGET, target.key)
        match grant(view, target, port, protocol):
            case NoAccess():
                continue
            case FullAccess():
                yield AccessRule(by, callers)
            case MatchingAccess(matches):
                yield AccessRule(by, callers, matches)


def _named(view: View, identity: ServiceIdentity, port: Port, protocol: Protocol) -> tuple[NamedMatch, ...]:
    """Return the matches by which TrafficTargets admit requests, each with the first group that has it."""
    keys: dict[HTTPMatch, PolicyKey] = {}
    targets = () if is_permissive(view, identity.namespace) else targets_by_destination(view).lookup(identity)
    for target in targets:
        if isinstance(grant(view, target, port, protocol), MatchingAccess):
            for rule in target.rules:
                group = PolicyKey(target.key.namespace, rule.name)
                matches = rule_matches(view, group.namespace, rule) if rule.kind is RouteKind.HTTP else ()
                # Equal matches of several groups are counted as one, under the first group by name, so the
                # label of the count does not depend on the order of objects.
                keys |= {http_match: min(keys.get(http_match, group), group) for http_match in matches}
    named = (NamedMatch(group, match) for match, group in keys.items())
    return tuple(sorted(named, key=lambda named_match: (named_match.group, named_match.match.name)))


def _escaped_slashes(protocol: Protocol, services: Iterable[Service]) -> EscapedSlashes:
    """Return the handling of escaped slashes at a port: kept if one of its services asks for it.

    One application answers for all these services, and its rules belong to the port.
    """
    kept = any(service.escaped_slashes is EscapedSlashes.KEEP for service in services)
    return EscapedSlashes.KEEP if kept and protocol.is_http else EscapedSlashes.REJECT


def _tapped(view: View, services: Iterable[Service]) -> Tapped:
    """Return the tapped requests at a port: those of all services of the port."""
    result = (choice for service in services for choice in view.taps.get(service.key) or ())
    return tuple(sorted(set(result)))


def _rates(view: View, protocol: Protocol, services: Iterable[Service]) -> RateLimits:
    """Return the rate limits of a port; on a port without HTTP only those of connections."""
    result = rate_limits(view, tuple(service.key for service in services))
    return result if protocol.is_http else result.of_connections


def _application(group: ProxyGroup, port: Port) -> SocketAddress:
    if isinstance(group.interception, Explicit) and group.interception.application_address is not None:
        return SocketAddress(group.interception.application_address, port)
    return SocketAddress(LOOPBACK, port)


def _otherwise(group: ProxyGroup, port: Port) -> SocketAddress | None:
    match group.interception:
        case Transparent(ipv6=True):
            return SocketAddress(LOOPBACK_IPV6, port)
        case _:
            return None


def _listen(group: ProxyGroup, port: Port) -> SocketAddress | None:
    return None if group.address is None else SocketAddress(group.address, port)
