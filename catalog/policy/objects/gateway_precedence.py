"""Order of the matches of Gateway API routes at one Service port, as specified.

Every match of every rule is ordered by itself, over all routes of the port:

- HTTPRoute: an exact path, then regular expressions, then the longest prefix; then a given method, the most
  headers, the most query parameters. The specification leaves regular expressions free. They precede
  prefixes, because otherwise the prefix `/` would hide each of them.
- GRPCRoute: the most characters of the service, then of the method, then the most headers.
- For both then the oldest route (`metadata.creationTimestamp`; missing ones last), the first by
  `<namespace>/<name>`, the first rule and match within the route.

The order is total, and independent of the order of objects.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from catalog.store.precedence import age
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch

_ALL_PATHS = Prefix("/")


@dataclass(frozen=True, slots=True)
class RoutedMatch:
    """A match of a rule of a route; `rule` and `match` are indexes in the route and in the rule."""

    route: GatewayRoute
    rule: int
    match: int

    @property
    def rule_value(self) -> Rule:
        """The rule of the match."""
        return self.route.rules[self.rule]

    @property
    def request_match(self) -> RequestMatch:
        """The match itself."""
        return self.rule_value.matches[self.match]


def ordered(routes: Iterable[GatewayRoute]) -> tuple[RoutedMatch, ...]:
    """Return the matches of all rules in force of these routes of one kind, the first to decide first."""
    return tuple(sorted((item for route in routes for item in _matches(route)), key=precedence))


def by_age(routes: Iterable[GatewayRoute]) -> tuple[RoutedMatch, ...]:
    """Return the first rule in force of each route, the oldest route first, for routes of connections."""
    firsts = (next(_matches(route), None) for route in sorted(routes, key=_seniority))
    return tuple(first for first in firsts if first is not None)


def precedence(item: RoutedMatch) -> tuple[tuple[int, ...], tuple[bool, str, str], int, int]:
    """Return the sort key of a match at one Service port."""
    return specificity(item.request_match), _seniority(item.route), item.rule, item.match


def specificity(match: RequestMatch) -> tuple[int, ...]:
    """Return the first part of the sort key, from the match alone; the smallest decides first."""
    headers = -_count(match.headers)
    if match.grpc or isinstance(match.path, GrpcMethod):
        service, method = _characters(match.path)
        return (-service, -method, headers)
    path = match.path or _ALL_PATHS
    rank, length = _path_rank(path)
    return (rank, -length, not match.methods, headers, -_count(match.parameters))


def _matches(route: GatewayRoute) -> Iterator[RoutedMatch]:
    for index, rule in enumerate(route.rules):
        if not rule.dropped:
            yield from (RoutedMatch(route, index, number) for number in range(len(rule.matches)))


def _seniority(route: GatewayRoute) -> tuple[bool, str, str]:
    # The specification compares `<namespace>/<name>` as one text, which is not the order of the key.
    return (*age(route.created), str(route.key))


def _path_rank(path: Exact | Prefix | Regex) -> tuple[int, int]:
    """Return the class of a path, best first, and the deciding number of characters within the class."""
    match path:
        case Exact():
            return 0, 0
        case Regex():
            return 1, 0
        case Prefix(text):
            return 2, len(text)


def _characters(path: object) -> tuple[int, int]:
    """Return the numbers of characters of a gRPC service and method; 0 for any."""
    if not isinstance(path, GrpcMethod):
        return 0, 0
    return len(path.service or ""), len(path.method or "")


def _count(matches: tuple[FieldMatch, ...]) -> int:
    """Return the number of names: of several matches of one name only the first counts."""
    return len({item.name for item in matches})
