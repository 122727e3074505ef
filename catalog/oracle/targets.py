"""Decision of one TrafficTarget about a request to one place: a part of the oracle.

See `catalog.oracle.decide` for the rules in words.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from catalog.oracle.callers import is_caller
from catalog.oracle.request.request import Request, fits
from catalog.store.smi import http_route_groups, targets_by_destination, tcp_routes
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, RouteKind, Rule, TrafficTarget


class Verdict(enum.StrEnum):
    """Verdict of one TrafficTarget about a request to one place; only ADMITS admits.

    OTHER_REQUESTS: the target admits some requests there, but not this one.
    """

    ADMITS = "admits the request"
    OTHER_REQUESTS = "admits only other requests there"
    OTHER_CLIENTS = "names other sources"
    OTHER_PORTS = "admits only other ports"
    HTTP_ONLY = "has only HTTP rules, and the port speaks TCP"
    DANGLING = "lacks a rule with an existing route"
    NO_RULES = "has no rules"
    NOT_IN_FORCE = "is in another namespace than its destination"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The answering identity behind a service, and the port of the workload."""

    identity: ServiceIdentity
    port: Port


def verdicts(
    view: View, request: Request, place: tuple[Place, bool]
) -> Iterator[tuple[TrafficTarget, Verdict]]:
    """Yield the verdicts of all targets for a place's identity, in the order of their keys."""
    where, is_http = place
    for target in targets_by_destination(view).lookup(where.identity):
        yield target, judge(view, request, target, where.port, is_http=is_http)


def judge(view: View, request: Request, target: TrafficTarget, port: Port, *, is_http: bool) -> Verdict:
    """Return the verdict of a target about a request to a port of the destination: the table of rules.

    For example, a target with HTTP rules only gives HTTP_ONLY on a TCP port.
    """
    if target.key.namespace != target.destination.namespace:
        return Verdict.NOT_IN_FORCE
    if not any(is_caller(source, request.client, view.settings.trust_domain) for source in target.sources):
        return Verdict.OTHER_CLIENTS
    kinds = {rule.kind for rule in target.rules}
    if not kinds:
        return Verdict.NO_RULES
    if target.port not in (None, port):
        return Verdict.OTHER_PORTS
    # TCP rules limit the ports of HTTP rules too, so they are judged first.
    if RouteKind.TCP in kinds:
        routes = [tcp_routes(view).get(_key(target, rule.name)) for rule in _rules(target, RouteKind.TCP)]
        known = [route for route in routes if route is not None]
        if not any(not route.ports or port in route.ports for route in known):
            return Verdict.OTHER_PORTS if known else Verdict.DANGLING
    if not is_http:
        return Verdict.ADMITS if RouteKind.TCP in kinds else Verdict.HTTP_ONLY
    if RouteKind.HTTP not in kinds:
        return Verdict.ADMITS
    matches = tuple(matches_of(view, target))
    if not matches:
        return Verdict.DANGLING
    return Verdict.ADMITS if any(fits(match, request) for match in matches) else Verdict.OTHER_REQUESTS


def matches_of(view: View, target: TrafficTarget) -> Iterator[HTTPMatch]:
    """Yield the existing HTTP matches named in a TrafficTarget's rules."""
    for rule in _rules(target, RouteKind.HTTP):
        group = http_route_groups(view).get(_key(target, rule.name))
        by_name = {match.name: match for match in group.matches} if group is not None else {}
        # A rule without names stands for all matches of the group.
        yield from (by_name[name] for name in rule.matches or by_name if name in by_name)


def _rules(target: TrafficTarget, kind: RouteKind) -> Iterator[Rule]:
    return (rule for rule in target.rules if rule.kind is kind)


def _key(target: TrafficTarget, name: str) -> PolicyKey:
    return PolicyKey(target.key.namespace, name)
