"""Access by one TrafficTarget on one port: the table of rules and protocols.

| rules of the target | HTTP port | TCP port |
|---|---|---|
| HTTPRouteGroup only | matching requests | nothing |
| TCPRoute only | every request, on the TCPRoute's ports | the TCPRoute's ports |
| both | matching requests, on the TCPRoute's ports | the TCPRoute's ports |
| none | nothing | nothing |

A TCPRoute without ports covers all ports. Ports are those of the workload (target ports of a service). A rule
with a missing object is refused but keeps the place in the table, so a target with HTTP rules never becomes
one with TCP rules only because of a missing route group. Of the matches named in a rule, the existing ones
count.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from catalog.relations.permissive import is_permissive
from catalog.store.smi import http_route_groups, targets_between, tcp_routes
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, RouteKind, Rule, TrafficTarget
from meshwright.mesh.service import Protocol


@dataclass(frozen=True, slots=True)
class NoAccess:
    """Access that denies every caller."""


@dataclass(frozen=True, slots=True)
class FullAccess:
    """Access that admits every request or every connection."""


@dataclass(frozen=True, slots=True)
class MatchingAccess:
    """Access that admits requests if one of `matches` fits; there is at least one match."""

    matches: tuple[HTTPMatch, ...]


Grant = NoAccess | FullAccess | MatchingAccess


@derived
def grant(view: View, target: TrafficTarget, port: Port, protocol: Protocol) -> Grant:
    """Return the access given by a target on a port of the destination's workloads.

    For example, a target with one HTTPRouteGroup gives MatchingAccess on an HTTP port, and NoAccess on a TCP
    port.
    """
    if not in_force(target) or target.port not in (None, port):
        return NoAccess()
    kinds = {rule.kind for rule in target.rules}
    # TCP rules first: they limit the ports of HTTP rules too.
    if RouteKind.TCP in kinds and not _tcp_ports_hold(view, target, port):
        return NoAccess()
    if RouteKind.HTTP not in kinds:
        return FullAccess() if kinds else NoAccess()
    if not protocol.is_http:
        return FullAccess() if RouteKind.TCP in kinds else NoAccess()
    matches = once(_http_matches(view, target))
    return MatchingAccess(matches) if matches else NoAccess()


def in_force(target: TrafficTarget) -> bool:
    """Return whether a TrafficTarget may admit callers: only in the namespace of its destination."""
    return target.key.namespace == target.destination.namespace


def may_call(
    view: View,
    client: ServiceIdentity | None,
    server: ServiceIdentity | None,
    port: Port,
    protocol: Protocol,
) -> bool:
    """Return whether a client may send anything at all to a port of a server identity's workloads.

    Without a client: whether every client may.
    """
    # An endpoint without an identity cannot do mTLS, so it never receives calls of the mesh.
    if server is None:
        return False
    if is_permissive(view, server.namespace):
        return True
    return client is not None and any(
        grant(view, target, port, protocol) != NoAccess()
        for target in targets_between(view).lookup((client, server))
    )


def rule_matches(view: View, namespace: Namespace, rule: Rule) -> tuple[HTTPMatch, ...]:
    """Return the existing matches named in an HTTPRouteGroup rule, in the order of the group."""
    key = PolicyKey(namespace, rule.name)
    group = http_route_groups(view).get(key)
    if group is None or not rule.matches:
        return () if group is None else group.matches
    known = _places_by_name(view, key)
    places = sorted({place for name in rule.matches for place in known.get(name, ())})
    return tuple(group.matches[place] for place in places)


def once(parts: Iterable[tuple[HTTPMatch, ...]]) -> tuple[HTTPMatch, ...]:
    """Return the matches of all parts in order, without the repetitions of several rules or groups.

    If the first part has them all, it is returned itself: most objects name one HTTPRouteGroup, and a large
    mesh has tens of thousands of them.
    """
    first, *others = tuple(parts) or ((),)
    result = tuple(dict.fromkeys(match for part in (first, *others) for match in part))
    return first if first == result else result


def unknown_matches(view: View, namespace: Namespace, rule: Rule) -> tuple[str, ...]:
    """Return the names of missing matches in an HTTPRouteGroup rule, sorted."""
    known = _places_by_name(view, PolicyKey(namespace, rule.name)) if rule.matches else {}
    return tuple(sorted(name for name in set(rule.matches) if name not in known))


@derived
def _places_by_name(view: View, key: PolicyKey) -> Mapping[str, tuple[int, ...]]:
    """Return the positions of an HTTPRouteGroup's matches by name, because many rules name a few each."""
    group = http_route_groups(view).get(key)
    result: dict[str, list[int]] = {}
    for place, match in enumerate(group.matches if group is not None else ()):
        result.setdefault(match.name, []).append(place)
    return MappingProxyType({name: tuple(places) for name, places in result.items()})


def _http_matches(view: View, target: TrafficTarget) -> Iterator[tuple[HTTPMatch, ...]]:
    for rule in target.rules:
        if rule.kind is RouteKind.HTTP:
            yield rule_matches(view, target.key.namespace, rule)


def _tcp_ports_hold(view: View, target: TrafficTarget, port: Port) -> bool:
    for rule in target.rules:
        if rule.kind is RouteKind.TCP:
            route = tcp_routes(view).get(PolicyKey(target.key.namespace, rule.name))
            if route is not None and (not route.ports or port in route.ports):
                return True
    return False
