"""Whom a TrafficTarget reaches: nobody, everybody, everything, or somebody of another namespace."""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.access import rule_matches
from catalog.codes import Code
from catalog.saying import say
from catalog.view import View
from mesh.identity import ServiceIdentity
from mesh.names import Namespace
from mesh.objects import ObjectKey, Problem, Severity
from mesh.policy import HTTPMatch, PolicyKey, RouteKind, TrafficTarget

_FEW = 2
"""Where so few others are in the mesh, to admit all of them is nothing to speak of."""


@dataclass(frozen=True, slots=True)
class Known:
    """The identities that workloads have, and the namespaces in which each name is one."""

    identities: frozenset[ServiceIdentity]
    namespaces: dict[str, list[Namespace]]

    @classmethod
    def of(cls, view: View) -> "Known":
        """Collect them from a view."""
        namespaces: dict[str, list[Namespace]] = {}
        for identity in sorted(view.workloads_by_identity):
            namespaces.setdefault(identity.service_account, []).append(identity.namespace)
        return cls(frozenset(view.workloads_by_identity), namespaces)

    def elsewhere(self, identity: ServiceIdentity) -> str:
        """Say where a workload has an identity of that name, if not here; empty where none has."""
        found = self.namespaces.get(identity.service_account, [])
        return ", ".join(f"{namespace}/{identity.service_account}" for namespace in found)


def problems(view: View) -> Iterator[Problem]:
    """Yield the problems of every TrafficTarget."""
    known = Known.of(view)
    for target in view.targets:
        yield from _nobody(view, known, target)
        yield from _everybody(view, known, target)
        if is_wide_open(view, target):
            wanted = "its sources may do everything on every port; name routes if that is not meant"
            yield _said(view, target, Code.WIDE_OPEN, Severity.INFO, "spec.rules", "", wanted)


def is_wide_open(view: View, target: TrafficTarget) -> bool:
    """Say whether a target admits every request and connection on every port of its destination."""
    named = [rule.name for rule in target.rules if rule.kind is RouteKind.TCP]
    routes = [view.tcp_routes.get(PolicyKey(target.key.namespace, name)) for name in named]
    if target.port is not None or not any(route is not None and not route.ports for route in routes):
        return False
    http = [rule for rule in target.rules if rule.kind is RouteKind.HTTP]
    matches = [match for rule in http for match in rule_matches(view, target.key.namespace, rule) or ()]
    return not http or any(_is_any(match) for match in matches)


def _is_any(match: HTTPMatch) -> bool:
    return match.path_regex in (None, ".*", "/.*") and not match.methods and not match.headers


def _nobody(view: View, known: Known, target: TrafficTarget) -> Iterator[Problem]:
    if target.destination not in known.identities:
        near = known.elsewhere(target.destination)
        wanted = "the identity of a workload; until one has it, nothing is admitted"
        yield _said(
            view,
            target,
            Code.UNKNOWN_DESTINATION,
            Severity.WARNING,
            "spec.destination",
            str(target.destination),
            wanted + (f" (there is {near})" if near else ""),
        )
    for number, source in enumerate(target.sources):
        if source not in known.identities and (near := known.elsewhere(source)):
            field, wanted = f"spec.sources[{number}]", f"no workload has this identity; one has {near}"
            yield _said(view, target, Code.SOURCE_NAMESPACE, Severity.WARNING, field, str(source), wanted)
    if target.sources and known.identities.isdisjoint(target.sources):
        named = ", ".join(map(str, target.sources))
        wanted = "the identity of a workload; until one has it, nobody is admitted"
        yield _said(view, target, Code.UNKNOWN_SOURCES, Severity.WARNING, "spec.sources", named, wanted)


def _everybody(view: View, known: Known, target: TrafficTarget) -> Iterator[Problem]:
    others = known.identities - {target.destination}
    if len(others) > _FEW and others <= set(target.sources):
        wanted = "every other identity of the mesh is a source; leave out who need not call it"
        yield _said(
            view, target, Code.EVERYBODY, Severity.WARNING, "spec.sources", str(len(target.sources)), wanted
        )


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
