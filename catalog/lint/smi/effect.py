"""TrafficTargets without effect: rules without a port, or another TrafficTarget that admits the same."""

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from catalog.lint.budget import Budget, within
from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.templates import future_ports
from catalog.lint.wording import Place, listed, problem_of
from catalog.policy.access import NoAccess, grant, in_force, unknown_matches
from catalog.relations.backends.targets import served_by
from catalog.store.inventory import by_identity
from catalog.store.smi import http_route_groups, targets_by_destination, tcp_routes
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey, RouteKind, Rule, TrafficTarget
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import Protocol

_COMPARED: Final = 64
"""Most TrafficTargets with the same destination and rules with which one is compared.

The number is small, because a change of one of them checks all of them again.
"""


def problems(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    """Yield the problems of the effect of a TrafficTarget; one with unknown routes has other problems."""
    view = lint.view
    in_order = target.rules and all(_is_known(view, target, rule) for rule in target.rules)
    if not in_order or not in_force(target):
        return
    yield from _no_port(lint, target)
    looked_for = "another TrafficTarget that admits the same"
    place = Place(view, ObjectKey.from_name(TRAFFIC_TARGET, target.key))
    yield from within(place, "spec.sources", looked_for, partial(_duplicate, view, target), _COMPARED)


def _is_known(view: View, target: TrafficTarget, rule: Rule) -> bool:
    route = PolicyKey(target.key.namespace, rule.name)
    if rule.kind is RouteKind.HTTP:
        return route in http_route_groups(view) and not unknown_matches(view, target.key.namespace, rule)
    return route in tcp_routes(view)


def _no_port(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    view = lint.view
    called = sorted({*ports_called(view, target.destination), *future_ports(lint, target.destination)})
    if called and all(grant(view, target, *item) == NoAccess() for item in called):
        ports = listed([f"{number} ({protocol.value})" for number, protocol in called])
        wanted = (
            f"The rules do not fit any target port of {target.destination}, so the TrafficTarget does not "
            f"admit requests. Correct the rules; the target ports are {ports}."
        )
        yield _problem(view, target, Code.NO_PORT, "spec.rules", "", wanted)


@derived
def ports_called(view: View, identity: ServiceIdentity) -> tuple[tuple[Port, Protocol], ...]:
    """Return the target ports of the workloads of an identity with their protocols, sorted."""
    result: set[tuple[Port, Protocol]] = set()
    for workload in by_identity(view).lookup(identity):
        result.update((number, protocol) for number, protocol, _ in served_by(view, workload))
    return tuple(sorted(result))


def _duplicate(view: View, target: TrafficTarget, budget: Budget) -> Iterator[Problem]:
    others = alike(view, target.destination).get(_form(target), ())
    narrow = frozenset(target.sources) if len(others) > 1 else frozenset()
    for other, wide in others if len(others) > 1 else ():
        budget.spend()
        if other != target.key and (narrow < wide or (narrow == wide and other < target.key)):
            wanted = (
                f"TrafficTarget {other} has the same rules and admits all of these sources. "
                "Delete this TrafficTarget."
            )
            named = listed([str(source) for source in target.sources])
            yield _problem(view, target, Code.DUPLICATE_TARGET, "spec.sources", named, wanted)
            return


_Form = tuple[Port | None, frozenset[Rule]]
"""The port and rules of a TrafficTarget."""

_Sources = tuple[PolicyKey, frozenset[ServiceIdentity]]
"""A TrafficTarget and its sources."""


def _form(target: TrafficTarget) -> _Form:
    return target.port, frozenset(target.rules)


@derived
def alike(view: View, destination: ServiceIdentity) -> Mapping[_Form, tuple[_Sources, ...]]:
    """Return the TrafficTargets that apply to a destination, with their sources, by port and rules."""
    result: dict[_Form, list[_Sources]] = {}
    for target in targets_by_destination(view).lookup(destination):
        if in_force(target):
            result.setdefault(_form(target), []).append((target.key, frozenset(target.sources)))
    return MappingProxyType({form: tuple(targets) for form, targets in result.items()})


def _problem(view: View, target: TrafficTarget, code: Code, field: str, value: str, expected: str) -> Problem:
    key = ObjectKey.from_name(TRAFFIC_TARGET, target.key)
    return problem_of(view, key, code, Severity.WARNING, field, value, expected)
