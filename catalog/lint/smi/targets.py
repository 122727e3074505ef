"""Problems of the parts of a TrafficTarget: its namespace, sources, rules and routes."""

from collections.abc import Iterator, Mapping
from functools import partial

from catalog.lint.codes import Code
from catalog.lint.wording import Suggestions, listed, problem_of
from catalog.policy.access import in_force, rule_matches, unknown_matches
from catalog.store.smi import http_route_groups, tcp_routes
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey, RouteKind, Rule, TrafficTarget
from meshwright.mesh.problems.problem import Problem, Severity


def problems(view: View, target: TrafficTarget) -> Iterator[Problem]:
    """Yield the problems of a TrafficTarget's namespace, sources, rules and routes."""
    key = ObjectKey.from_name(TRAFFIC_TARGET, target.key)
    if not in_force(target):
        yield problem_of(
            view,
            key,
            Code.FOREIGN_DESTINATION,
            Severity.ERROR,
            "spec.destination.namespace",
            target.destination.namespace,
            (
                "A TrafficTarget must be in the namespace of its destination, but this one is in "
                f"{target.key.namespace}, so it is not in force. Move it to the destination's "
                "namespace."
            ),
        )
    if not target.sources:
        wanted = "The list is empty, so the TrafficTarget does not admit callers. Add a source."
        yield problem_of(view, key, Code.NO_SOURCES, Severity.WARNING, "spec.sources", "", wanted)
    if not target.rules:
        wanted = "The list is empty, so the TrafficTarget does not admit requests. Add a rule."
        yield problem_of(view, key, Code.NO_RULES, Severity.WARNING, "spec.rules", "", wanted)
        return
    meant = {
        rule.name: Suggestions(partial(_names, view, PolicyKey(key.namespace, rule.name)))
        for rule in target.rules
    }
    bad = [
        (rule, problem)
        for number, rule in enumerate(target.rules)
        if (problem := _of_rule(view, key, number, rule, meant)) is not None
    ]
    yield from (item for _, item in bad)
    refused = [rule for rule, _ in bad if not rule_matches(view, key.namespace, rule)]
    if len(refused) == len(target.rules):
        wanted = (
            "The rules are not in force, so the TrafficTarget does not admit requests. Correct the rules."
        )
        yield problem_of(view, key, Code.ALL_REFUSED, Severity.ERROR, "spec.rules", "", wanted)


@derived
def _names(view: View, route: PolicyKey) -> tuple[str, ...]:
    """Return the names of the matches of an HTTPRouteGroup, sorted."""
    group = http_route_groups(view).get(route)
    return () if group is None else tuple(sorted(match.name for match in group.matches))


def _of_rule(
    view: View, key: ObjectKey, number: int, rule: Rule, meant: Mapping[str, Suggestions]
) -> Problem | None:
    place = f"spec.rules[{number}]"
    route = PolicyKey(key.namespace, rule.name)
    known = http_route_groups(view) if rule.kind is RouteKind.HTTP else tcp_routes(view)
    if route not in known:
        wanted = (
            f"{rule.kind.value} {route} does not exist or is invalid, so this rule is not in force. Create "
            f"or correct the {rule.kind.value}."
        )
        return problem_of(view, key, Code.UNKNOWN_ROUTE, Severity.ERROR, f"{place}.name", rule.name, wanted)
    unknown = unknown_matches(view, key.namespace, rule) if rule.kind is RouteKind.HTTP else ()
    if not unknown:
        return None
    there = listed(_names(view, route)) or "no matches"
    kept = rule_matches(view, key.namespace, rule)
    effect = "The other matches of this rule are in force" if kept else "This rule is not in force"
    wanted = (
        f"HTTPRouteGroup {route} does not have this match; it has "
        f"{there}{meant[rule.name].hint(*unknown)}. {effect}. "
        "Add the match to the group, or correct the name."
    )
    return problem_of(
        view, key, Code.UNKNOWN_MATCH, Severity.ERROR, f"{place}.matches", ", ".join(unknown), wanted
    )
