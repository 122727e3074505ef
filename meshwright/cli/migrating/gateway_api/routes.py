"""Routes of the Gateway API for the Services of a mesh, from the Services' own route tables.

A route table is what SMI's splits and RoutePolicies mean together, so an equivalent route has its entries in
order. TrafficTargets stay, and decide access as before.
"""

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from catalog.policy.objects.splits import in_force
from catalog.policy.route_table import table_where
from catalog.policy.values.route_actions import Forward, Share, WeightedBackend
from catalog.policy.values.route_table import AppliedRoute, RouteEntry
from catalog.relations.backends.protocols import protocol_of
from catalog.store.view import View
from meshwright.cli.migrating.findings import Finding
from meshwright.cli.migrating.gateway_api.ordered_matches import (
    Decision,
    both,
    in_gateway_form,
    ordered,
)
from meshwright.cli.migrating.objects import of_problem
from meshwright.mesh.kinds import (
    GATEWAY_TCP_ROUTE,
    HTTP_ROUTE,
    HTTP_ROUTE_GROUP,
    ROUTE_POLICY,
    SERVICE,
    TRAFFIC_SPLIT,
    Kind,
)
from meshwright.mesh.matching import RequestMatch
from meshwright.mesh.problems.problem import Problems, Severity
from meshwright.mesh.service import ServiceKey, ServicePort

GREATEST_RULES: Final = 16
GREATEST_MATCHES: Final = 64
"""Maximum number of rules of an HTTPRoute, and of matches of a rule, by the definition of HTTPRoute."""

_SOURCES: Final = frozenset({HTTP_ROUTE_GROUP, ROUTE_POLICY, SERVICE, TRAFFIC_SPLIT})

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
"""Methods that an HTTPRoute can match."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A backend of a route with its weight: a Service's port."""

    service: ServiceKey
    port: ServicePort
    weight: int


@dataclass(frozen=True, slots=True)
class RouteRule:
    """A rule of a new route: requests of any of `matches` go to `destinations`.

    `entry` has the treatment of the requests.
    """

    matches: tuple[RequestMatch, ...]
    destinations: tuple[Destination, ...]
    entry: RouteEntry


@dataclass(frozen=True, slots=True)
class NewRoute:
    """A new HTTPRoute, or with `is_http` False a TCPRoute, for calls to a Service's port."""

    service: ServiceKey
    port: ServicePort
    is_http: bool
    rules: tuple[RouteRule, ...]

    @property
    def kind(self) -> Kind:
        """The kind of the route."""
        return HTTP_ROUTE if self.is_http else GATEWAY_TCP_ROUTE


class Unwritable(Exception):
    """A part of a route table that no route of the Gateway API has; the text says which."""


def refused_objects(problems: Problems) -> tuple[Finding, ...]:
    """Return the errors of objects from which routes are made, because the routes lack what they say."""
    return tuple(
        of_problem(str(problem.key), problem)
        for problem in problems
        if problem.severity is Severity.ERROR and problem.key is not None and problem.key.kind in _SOURCES
    )


def routes_of(view: View, key: ServiceKey) -> list[NewRoute]:
    """Return a route for each port of a Service that has a split; raise Unwritable or OrderError."""
    service = view.services.get(key)
    if service is None:
        raise Unwritable("the Service does not exist")
    if service.headless:
        raise Unwritable("the Service is headless, so it cannot be the parent of a route")
    ports = [port for port in service.ports if in_force(view, key, protocol_of(view, key, port))]
    if not ports:
        raise Unwritable("the split has no effect")
    return [_of_port(view, key, port) for port in ports]


def _of_port(view: View, key: ServiceKey, port: ServicePort) -> NewRoute:
    entries = table_where(view, key, port, lambda _: True)
    parts = [source.part for entry in entries for source in entry.provenance]
    if any(isinstance(part, AppliedRoute) for part in parts):
        raise Unwritable(f"port {port.port} has a route of the Gateway API already, which takes precedence")
    if not protocol_of(view, key, port).is_http:
        last = entries[-1]
        return NewRoute(key, port, False, (RouteRule((), _destinations(view, last), last),))
    decisions = [decision for entry in entries for decision in _decisions(entry)]
    rules = [
        RouteRule(tuple(item.match for item in group), _destinations(view, entry), entry)
        for entry, group in groupby(ordered(decisions), key=lambda item: item.action)
    ]
    if len(rules) > GREATEST_RULES:
        raise Unwritable(f"{len(rules)} rules are necessary, and a route has at most {GREATEST_RULES}")
    if max(len(rule.matches) for rule in rules) > GREATEST_MATCHES:
        raise Unwritable(f"a rule needs more than {GREATEST_MATCHES} matches")
    return NewRoute(key, port, True, tuple(rules))


def _decisions(entry: RouteEntry) -> list[Decision[RouteEntry]]:
    """Return a decision for each method of an entry; the action is the entry without its matches."""
    if entry.faulty:
        raise Unwritable("a RoutePolicy injects faults into its requests")
    match: RequestMatch | None = RequestMatch()
    for other in entry.matches:
        match = match and both(match, in_gateway_form(other))
    # No request fits, for example because a split's match and a rule's match have different methods.
    if match is None:
        return []
    if wrong := sorted(set(match.methods) - METHODS):
        raise Unwritable(f"an HTTPRoute cannot match method {wrong[0]}")
    action = replace(entry, matches=(), provenance=())
    methods = match.methods or ("",)
    return [Decision(replace(match, methods=(method,) if method else ()), action) for method in methods]


def _destinations(view: View, entry: RouteEntry) -> tuple[Destination, ...]:
    if not isinstance(entry.action, Forward):
        raise Unwritable("no backend of the split has the called port")
    return tuple(service_port(view, share) for share in entry.action.shares)


def service_port(view: View, share: Share) -> Destination:
    """Return the Service's port that a share leads to."""
    if not isinstance(share, WeightedBackend) or not isinstance(share.upstream, ServiceKey):
        raise Unwritable(f"{share} is no backend of a split")
    # Every port that leads to the target port has the same endpoints.
    port = view.services[share.upstream].ports_leading_to(share.target_port)[0]
    return Destination(share.upstream, port, share.weight)
