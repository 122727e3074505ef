"""TrafficTargets without effect: no port fits their rules, or another target admits the same."""

from collections.abc import Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from catalog.lint.budget import Budget, within
from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.templates import ports_to_come
from catalog.lint.wording import Place, listed, say
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
"""TrafficTargets of one destination with equal rules that a TrafficTarget is compared with.

Each change of one of them has all of them looked at again.
"""


def problems(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    """Yield what is wrong with the effect of a TrafficTarget whose rules are all there."""
    view = lint.view
    in_order = target.rules and all(_is_known(view, target, rule) for rule in target.rules)
    if not in_order or not in_force(target):
        return
    yield from _no_port(lint, target)
    looked_for = "another TrafficTarget that admits the same"
    place = Place(view, ObjectKey.of(TRAFFIC_TARGET, target.key))
    yield from within(place, "spec.sources", looked_for, partial(_duplicate, view, target), _COMPARED)


def _is_known(view: View, target: TrafficTarget, rule: Rule) -> bool:
    route = PolicyKey(target.key.namespace, rule.name)
    if rule.kind is RouteKind.HTTP:
        return route in http_route_groups(view) and not unknown_matches(view, target.key.namespace, rule)
    return route in tcp_routes(view)


def _no_port(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    view = lint.view
    called = sorted({*ports_called(view, target.destination), *ports_to_come(lint, target.destination)})
    if called and all(grant(view, target, *each) == NoAccess() for each in called):
        ports = listed([f"{number} ({protocol.value})" for number, protocol in called])
        where = f"a target port at which {target.destination} is called: {ports}"
        wanted = f"rules that fit {where}; nothing is admitted"
        yield _said(view, target, Code.NO_PORT, "spec.rules", "", wanted)


@derived
def ports_called(view: View, identity: ServiceIdentity) -> tuple[tuple[Port, Protocol], ...]:
    """Return the ports at which workloads of an identity are called, and what they speak; sorted."""
    found: set[tuple[Port, Protocol]] = set()
    for workload in by_identity(view).found(identity):
        found.update((number, protocol) for number, protocol, _ in served_by(view, workload))
    return tuple(sorted(found))


def _duplicate(view: View, target: TrafficTarget, budget: Budget) -> Iterator[Problem]:
    others = alike(view, target.destination).get(_form(target), ())
    narrow = frozenset(target.sources) if len(others) > 1 else frozenset()
    for other, wide in others if len(others) > 1 else ():
        budget.spend()
        if other != target.key and (narrow < wide or (narrow == wide and other < target.key)):
            wanted = f"TrafficTarget {other} has the same rules, and admits all of these; keep one"
            named = listed([str(each) for each in target.sources])
            yield _said(view, target, Code.DUPLICATE_TARGET, "spec.sources", named, wanted)
            return


_Form = tuple[Port | None, frozenset[Rule]]
"""What a target admits its sources."""

_Sources = tuple[PolicyKey, frozenset[ServiceIdentity]]
"""A target, and whom it admits."""


def _form(target: TrafficTarget) -> _Form:
    return target.port, frozenset(target.rules)


@derived
def alike(view: View, destination: ServiceIdentity) -> Mapping[_Form, tuple[_Sources, ...]]:
    """Return the targets of a destination in force, by what they admit their sources."""
    found: dict[_Form, list[_Sources]] = {}
    for target in targets_by_destination(view).found(destination):
        if in_force(target):
            found.setdefault(_form(target), []).append((target.key, frozenset(target.sources)))
    return MappingProxyType({form: tuple(targets) for form, targets in found.items()})


def _said(view: View, target: TrafficTarget, code: Code, field: str, value: str, expected: str) -> Problem:
    key = ObjectKey.of(TRAFFIC_TARGET, target.key)
    return say(view, key, code, Severity.WARNING, field, value, expected)
