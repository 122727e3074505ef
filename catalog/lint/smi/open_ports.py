"""TrafficTargets with only TCPRoutes, which admit every request at an HTTP port.

TrafficTargets add up, so the HTTPRouteGroups of another TrafficTarget with the same sources do not limit
these requests. In Open Service Mesh a TCPRoute did not admit HTTP requests, so former users of OSM need this
warning.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.smi.effect import ports_called
from catalog.lint.templates import future_ports
from catalog.lint.wording import problem_of
from catalog.policy.access import FullAccess, MatchingAccess, grant, in_force
from catalog.store.smi import targets_by_destination
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey, RouteKind, TrafficTarget
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import Protocol

_Narrowed = tuple[PolicyKey, ServiceIdentity]
"""A TrafficTarget with HTTPRouteGroups, and a common source."""


def problems(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    """Yield a problem per HTTP port opened by a TrafficTarget, although another limits the same source."""
    view, destination = lint.view, target.destination
    if not in_force(target) or not _is_tcp(target):
        return
    for port, protocol in sorted({*ports_called(view, destination), *future_ports(lint, destination)}):
        result = narrowed(view, destination, port).get(target.key) if protocol.is_http else None
        if result is not None:
            other, source = result
            key = ObjectKey.from_name(TRAFFIC_TARGET, target.key)
            wanted = (
                "This TrafficTarget admits every request at this HTTP port, although TrafficTarget "
                f"{other} admits only some requests of {source}. Name other ports, or put both "
                "rules into one TrafficTarget."
            )
            yield problem_of(view, key, Code.OPENS_HTTP, Severity.WARNING, "spec.rules", str(port), wanted)


@derived
def narrowed(view: View, destination: ServiceIdentity, port: Port) -> Mapping[PolicyKey, _Narrowed]:
    """Return the TrafficTargets that open an HTTP port, each with a limiting one and the common source."""
    targets = [
        traffic_target
        for traffic_target in targets_by_destination(view).lookup(destination)
        if in_force(traffic_target)
    ]
    matching: dict[ServiceIdentity, PolicyKey] = {}
    for target in targets:
        if isinstance(grant(view, target, port, Protocol.HTTP), MatchingAccess):
            for source in target.sources:
                matching.setdefault(source, target.key)
    return MappingProxyType(
        {
            target.key: (matching[source], source)
            for target in targets
            if _is_tcp(target) and grant(view, target, port, Protocol.HTTP) == FullAccess()
            for source in reversed(target.sources)
            if source in matching
        }
    )


def _is_tcp(target: TrafficTarget) -> bool:
    return bool(target.rules) and all(rule.kind is RouteKind.TCP for rule in target.rules)
