"""Matches without effect, because an equal match of another rule precedes them."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from catalog.policy.objects.gateway_precedence import RoutedMatch, by_age, ordered
from catalog.relations.attachment import routes_at
from catalog.store.gateway import route_of
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE, TLS_ROUTE
from meshwright.mesh.matching import FieldMatch, Prefix, RequestMatch
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey

HiddenMatch = tuple[PolicyKey, int, int]
"""A match by its route, and the indexes of the rule and of the match."""


@derived
def hidden_matches(
    view: View, key: ServiceKey, port: Port, namespace: Namespace
) -> Mapping[HiddenMatch, RoutedMatch]:
    """Return the matches without effect at a Service's port, each with the preceding match.

    `namespace` is the routes' namespace: only routes of one namespace decide the requests of a caller.
    """
    keys = routes_at(view, key, port, namespace)
    routes = [route for route_key in keys if (route := route_of(view, route_key)) is not None]
    kind = keys[0].kind if keys else HTTP_ROUTE
    if kind == TLS_ROUTE:
        return MappingProxyType({})
    result: dict[HiddenMatch, RoutedMatch] = {}
    first: dict[RequestMatch, RoutedMatch] = {}
    for item in ordered(routes) if kind in (HTTP_ROUTE, GRPC_ROUTE) else by_age(routes):
        winner = first.setdefault(_normalised(item.request_match), item)
        if winner is not item:
            result[item.route.key, item.rule, item.match] = winner
    return MappingProxyType(result)


def _normalised(match: RequestMatch) -> RequestMatch:
    """Return an equivalent match, the same for all forms of one match."""
    path = match.path if match.grpc else match.path or Prefix("/")
    return replace(match, path=path, headers=_sorted(match.headers), parameters=_sorted(match.parameters))


def _sorted(fields: tuple[FieldMatch, ...]) -> tuple[FieldMatch, ...]:
    """Return the fields by name; of several with one name only the first counts."""
    first = {field.name: field for field in reversed(fields)}
    return tuple(first[name] for name in sorted(first))
