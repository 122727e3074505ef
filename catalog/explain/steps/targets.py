"""Steps about TrafficTargets: the verdict of each for one place, and the rules that do not fit."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step, origin_of
from catalog.oracle import decide as oracle
from catalog.oracle.decide import Place, Verdict
from catalog.oracle.request.request import Request, headers_missed, method_fits, path_fits
from catalog.store.smi import http_route_groups, tcp_routes
from catalog.store.view import View
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, TCP_ROUTE, TRAFFIC_TARGET
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, RouteKind, Rule, TrafficTarget

_WITHOUT_RULES = frozenset({Verdict.OTHER_CLIENTS, Verdict.NO_RULES, Verdict.NOT_IN_FORCE})


def of_place(view: View, request: Request, place: tuple[Place, bool]) -> Iterator[Step]:
    """Yield a step for each TrafficTarget with the identity of a place, with its rules if they decide."""
    result = tuple(oracle.verdicts(view, request, place))
    if not result:
        yield Step(f"No TrafficTarget has the destination {place[0].identity}.", depth=1)
    for target, verdict in result:
        text = f"TrafficTarget {target.key} {_words(verdict, request, target, place[0])}."
        aside = verdict is Verdict.OTHER_CLIENTS
        yield Step(text, origin_of(view, TRAFFIC_TARGET, target.key), depth=1, aside=aside)
        if verdict not in _WITHOUT_RULES:
            for rule in target.rules:
                yield from _rule(view, request, target, rule, place)


def _words(verdict: Verdict, request: Request, target: TrafficTarget, place: Place) -> str:
    match verdict:
        case Verdict.OTHER_CLIENTS:
            sources = ", ".join(map(str, target.sources)) or "none"
            return f"names other sources than {request.client}: {sources}"
        case Verdict.OTHER_PORTS if target.port not in (None, place.port):
            return f"is only for port {target.port} of its destination"
        case Verdict.OTHER_PORTS:
            return f"admits other ports than {place.port}"
        case Verdict.NOT_IN_FORCE:
            return (
                f"{verdict.value}, so it is not in force; it must be in namespace "
                f"{target.destination.namespace}"
            )
        case _:
            return verdict.value


def _rule(
    view: View, request: Request, target: TrafficTarget, rule: Rule, place: tuple[Place, bool]
) -> Iterator[Step]:
    """Yield the steps of one TrafficTarget rule; an HTTPRouteGroup is left out at a TCP port."""
    key = PolicyKey(target.key.namespace, rule.name)
    if rule.kind is RouteKind.TCP:
        yield _tcp_route(view, key)
    elif place[1]:
        yield from _http_group(view, request, key, rule)


def _tcp_route(view: View, key: PolicyKey) -> Step:
    route = tcp_routes(view).get(key)
    if route is None:
        return Step(f"TCPRoute {key} does not exist or is invalid, so the rule is not in force.", depth=2)
    ports = f"ports {', '.join(map(str, route.ports))}" if route.ports else "all ports"
    return Step(f"TCPRoute {key} is for {ports}.", origin_of(view, TCP_ROUTE, key), depth=2)


def _http_group(view: View, request: Request, key: PolicyKey, rule: Rule) -> Iterator[Step]:
    group = http_route_groups(view).get(key)
    if group is None:
        yield Step(
            f"HTTPRouteGroup {key} does not exist or is invalid, so the rule is not in force.", depth=2
        )
        return
    origin = origin_of(view, HTTP_ROUTE_GROUP, key)
    has = [match.name for match in group.matches]
    unknown = [name for name in rule.matches if name not in has]
    if unknown or not has:
        lacks = f"match {', '.join(unknown)}" if unknown else "matches"
        nothing = not has or len(unknown) == len(rule.matches)
        so = "the rule admits nothing" if nothing else "only the other matches of the rule count"
        yield Step(f"HTTPRouteGroup {key} has no {lacks}; {so}.", origin, depth=2)
    for match in group.matches:
        if not rule.matches or match.name in rule.matches:
            text = f"Match {match.name} of HTTPRouteGroup {key} {_fit(match, request)}."
            yield Step(text, origin, depth=2)


def _fit(match: HTTPMatch, request: Request) -> str:
    faults = []
    if not path_fits(match, request):
        faults.append(f"the whole path must match {match.path_regex}")
    if not method_fits(match, request):
        faults.append(f"the method must be one of {', '.join(match.methods)}")
    wanted = {header.name: header.regex for header in match.headers}
    faults.extend(f"header {name} must match {wanted[name]}" for name in headers_missed(match, request))
    return "does not fit the request: " + " and ".join(faults) if faults else "fits the request"
