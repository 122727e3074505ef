"""Whom a TrafficTarget reaches: nobody, everybody, everything, or somebody of another namespace."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.indexes import MANY, Lint
from catalog.lint.told import say
from catalog.policy.access import rule_matches
from catalog.store.view import View
from mesh.identity import ServiceIdentity
from mesh.objects import ObjectKey, Problem, Severity
from mesh.policy import HTTPMatch, PolicyKey, RouteKind, TrafficTarget
from mesh.workload import WorkloadKey

_CONTROLLERS: Final = ("Deployment", "StatefulSet", "DaemonSet")
_FEW = 2
"""Where so few others are in the mesh, to admit all of them is nothing to speak of."""


def problems(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    """Yield what is wrong with whom a TrafficTarget reaches."""
    yield from _nobody(lint, target)
    yield from _everybody(lint, target)
    if is_wide_open(lint.view, target):
        wanted = "its sources may do everything on every port; name routes if that is not meant"
        yield _said(lint.view, target, Code.WIDE_OPEN, Severity.INFO, "spec.rules", "", wanted)


def is_wide_open(view: View, target: TrafficTarget) -> bool:
    """Say whether a target admits every request and connection on every port of its destination."""
    named = [rule.name for rule in target.rules if rule.kind is RouteKind.TCP]
    routes = [view.tcp_routes.get(PolicyKey(target.key.namespace, name)) for name in named]
    if target.port is not None or not any(route is not None and not route.ports for route in routes):
        return False
    http = [rule for rule in target.rules if rule.kind is RouteKind.HTTP]
    matches = [match for rule in http for match in rule_matches(view, target.key.namespace, rule)]
    return not http or any(_is_any(match) for match in matches)


def _is_any(match: HTTPMatch) -> bool:
    return match.path_regex in (None, ".*", "/.*") and not match.methods and not match.headers


def _nobody(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    view = lint.view
    if not lint.is_known(target.destination):
        near = lint.elsewhere(target.destination)
        wanted = "the identity of a workload; until one has it, nothing is admitted"
        yield _said(
            view,
            target,
            Code.UNKNOWN_DESTINATION,
            Severity.WARNING,
            "spec.destination",
            str(target.destination),
            wanted + (f" (there is {near})" if near else "") + _of_workload(view, target.destination),
        )
    for source in target.sources:
        if not lint.is_known(source) and (near := lint.elsewhere(source)):
            wanted = f"no workload has this identity; one has {near}"
            code, named = Code.SOURCE_NAMESPACE, str(source)
            yield _said(view, target, code, Severity.WARNING, "spec.sources", named, wanted)
    if target.sources and not any(map(lint.is_known, target.sources)):
        named = ", ".join(map(str, target.sources))
        wanted = "the identity of a workload; until one has it, nobody is admitted"
        wanted += "".join(_of_workload(view, each) for each in target.sources)
        yield _said(view, target, Code.UNKNOWN_SOURCES, Severity.WARNING, "spec.sources", named, wanted)


def _of_workload(view: View, identity: ServiceIdentity) -> str:
    """Say whose identity may be meant where a ServiceAccount has a workload's name."""
    namespace, name = identity.namespace, identity.service_account
    found = view.workloads.get(WorkloadKey(namespace, name))
    if found is not None and found.identity != identity:
        return f" (the workload {found.key} has the ServiceAccount {found.identity})"
    for kind in _CONTROLLERS:
        template = view.templates.get(ObjectKey(kind, namespace, name))
        if template is not None and template.identity != identity:
            return f" ({template} has the ServiceAccount {template.identity})"
    return ""


def _everybody(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    if (crowd := lint.crowd) == MANY:
        return
    others = crowd - lint.is_known(target.destination)
    named = sum(map(lint.is_known, set(target.sources) - {target.destination}))
    if _FEW < others <= named:
        wanted = "every other identity of the mesh is a source; leave out who need not call it"
        code, number = Code.EVERYBODY, str(len(target.sources))
        yield _said(lint.view, target, code, Severity.WARNING, "spec.sources", number, wanted)


def _said(
    view: View,
    target: TrafficTarget,
    code: Code,
    severity: Severity,
    field: str,
    value: str,
    expected: str,
) -> Problem:
    key = ObjectKey("TrafficTarget", target.key.namespace, target.key.name)
    return say(view, key, code, severity, field, value, expected)
