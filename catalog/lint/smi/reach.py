"""Problems of the destination and sources of a TrafficTarget: unknown names and very wide policies."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.lint import IN_LINT, Lint
from catalog.lint.templates import by_identity_to_come
from catalog.lint.wording import OR_OUTSIDE, SUGGESTED, meant, problem_of
from catalog.policy.access import rule_matches
from catalog.store.inventory import by_identity, templates
from catalog.store.smi import targets, tcp_routes
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import DAEMON_SET, DEPLOYMENT, STATEFUL_SET, TRAFFIC_TARGET
from meshwright.mesh.names import Namespace, ServiceAccountName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey, RouteKind, TrafficTarget
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.workload import PodTemplate, Workload, WorkloadKey

_CONTROLLERS: Final = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)
_FEW = 2
"""Maximum number of other ServiceAccounts in the mesh for which admitting all of them is no problem."""

_FEW_ACCOUNTS: Final = 500
"""Most ServiceAccounts of a namespace among which a similar name is searched for, because each
TrafficTarget depends on the whole list."""

MANY: Final = -1
"""Replaces a number of identities larger than the longest list of sources."""


def _account(_: WorkloadKey, workload: Workload) -> tuple[ServiceAccountName, ...]:
    return (workload.identity.service_account,)


def _template_account(_: ObjectKey, template: PodTemplate) -> tuple[ServiceAccountName, ...]:
    return (template.identity.service_account,)


def _width(_: PolicyKey, target: TrafficTarget) -> tuple[int, ...]:
    return (len(target.sources),)


_accounts: Final = IN_LINT.index("workloads by ServiceAccount", lambda lint: lint.view.workloads, _account)
_template_accounts: Final = IN_LINT.index(
    "pod templates by ServiceAccount", lambda lint: templates(lint.view), _template_account
)
workloads_in: Final = IN_LINT.index(
    "workloads by namespace", lambda lint: lint.view.workloads, lambda _, result: (result.key.namespace,)
)
_templates_in_namespace: Final = IN_LINT.index(
    "pod templates by namespace",
    lambda lint: templates(lint.view),
    lambda _, pod_template: (pod_template.key.namespace,),
)
_widths: Final = IN_LINT.index("TrafficTargets by number of sources", lambda lint: targets(lint.view), _width)


@derived
def crowd(lint: Lint) -> int:
    """Return the number of identities of the mesh, or MANY if every TrafficTarget names fewer sources."""
    running, to_come = by_identity(lint.view), by_identity_to_come(lint)
    # A larger mesh cannot be covered by any list of sources. Without this limit each new identity would have
    # all TrafficTargets checked again.
    count, most = len(running), max(_widths(lint), default=0) + 1
    if count <= most and len(to_come) <= most:
        count += sum(identity not in running for identity in to_come)
    return count if count <= most and len(to_come) <= most else MANY


_crowd: Final = IN_LINT.firewall(crowd)


def is_known(lint: Lint, identity: ServiceIdentity) -> bool:
    """Return whether a workload, or a future Pod of a controller, has an identity."""
    return identity in by_identity(lint.view) or identity in by_identity_to_come(lint)


def _elsewhere(lint: Lint, identity: ServiceIdentity) -> str:
    """Return the identities of all namespaces with the same ServiceAccount name, as a list in a text."""
    name = identity.service_account
    there = {workload.identity for workload in _accounts(lint).lookup(name)}
    there.update(pod_template.identity for pod_template in _template_accounts(lint).lookup(name))
    return ", ".join(map(str, sorted(there)))


def problems(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    """Yield the problems of the destination and the sources of a TrafficTarget."""
    yield from _unknown_subjects(lint, target)
    yield from _everybody(lint, target)
    if is_wide_open(lint.view, target):
        wanted = (
            "The sources may send every request to every port of the destination. Name routes to admit less."
        )
        yield _problem(lint.view, target, Code.WIDE_OPEN, Severity.INFO, "spec.rules", "", wanted)


def is_wide_open(view: View, target: TrafficTarget) -> bool:
    """Return whether a TrafficTarget admits every request and connection of its sources on every port."""
    named = [rule.name for rule in target.rules if rule.kind is RouteKind.TCP]
    routes = [tcp_routes(view).get(PolicyKey(target.key.namespace, name)) for name in named]
    if target.port is not None or not any(route is not None and not route.ports for route in routes):
        return False
    http = [rule for rule in target.rules if rule.kind is RouteKind.HTTP]
    matches = [match for rule in http for match in rule_matches(view, target.key.namespace, rule)]
    return not http or any(_is_any(match) for match in matches)


def _is_any(match: HTTPMatch) -> bool:
    return match.path_regex in (None, ".*", "/.*") and not match.methods and not match.headers


def _unknown_subjects(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    view = lint.view
    if not is_known(lint, target.destination):
        near = _elsewhere(lint, target.destination)
        near_names = (f" (there is {near})" if near else "") + _intended_identity(
            lint, target.destination, near
        )
        wanted = (
            "A workload with this ServiceAccount does not exist, so the TrafficTarget does not admit "
            f"requests. Create the workload, or correct the name{near_names}."
        )
        yield _problem(
            view,
            target,
            Code.UNKNOWN_DESTINATION,
            Severity.WARNING,
            "spec.destination",
            str(target.destination),
            wanted,
        )
    for source in target.sources:
        if not is_known(lint, source) and (near := _elsewhere(lint, source)):
            wanted = (
                f"A workload with this ServiceAccount does not exist, but there is {near}. Correct the "
                "namespace."
            )
            code, named = Code.SOURCE_NAMESPACE, str(source)
            yield _problem(view, target, code, Severity.WARNING, "spec.sources", named, wanted)
    if target.sources and not any(is_known(lint, identity) for identity in target.sources):
        named = ", ".join(map(str, target.sources))
        # A cluster may have the ServiceAccount in a namespace that the server does not read.
        elsewhere = all(identity.namespace != target.key.namespace for identity in target.sources)
        or_outside = f", {OR_OUTSIDE}" if elsewhere else ""
        near = "".join(
            _intended_identity(lint, identity, _elsewhere(lint, identity))
            for identity in target.sources[:SUGGESTED]
        )
        wanted = (
            f"Workloads with these ServiceAccounts do not exist{or_outside}, so the TrafficTarget does not "
            f"admit callers. Create the workload, or correct the name{near}."
        )
        yield _problem(view, target, Code.UNKNOWN_SOURCES, Severity.WARNING, "spec.sources", named, wanted)


def _intended_identity(lint: Lint, identity: ServiceIdentity, elsewhere: str) -> str:
    """Return a clause with the likely intended identity: a workload's of this name, or a similar name."""
    if text := _of_workload(lint.view, identity):
        return text
    return "" if elsewhere else meant((identity.service_account,), accounts(lint, identity.namespace))


@derived
def accounts(lint: Lint, namespace: Namespace) -> tuple[ServiceAccountName, ...]:
    """Return the ServiceAccounts of the workloads of a namespace, sorted; empty above `_FEW_ACCOUNTS`."""
    service_account_names = {
        workload.identity.service_account for workload in workloads_in(lint).lookup(namespace)
    }
    service_account_names.update(
        pod_template.identity.service_account
        for pod_template in _templates_in_namespace(lint).lookup(namespace)
    )
    # The search for similar names compares each pair, so it is left out in large namespaces.
    return tuple(sorted(service_account_names)) if len(service_account_names) <= _FEW_ACCOUNTS else ()


def _of_workload(view: View, identity: ServiceIdentity) -> str:
    """Return a clause for a ServiceAccount name equal to the name of a workload or controller."""
    namespace, name = identity.namespace, identity.service_account
    workload = view.workloads.get(WorkloadKey(namespace, name))
    if workload is not None and workload.identity != identity:
        return f" (the workload {workload.key} has the ServiceAccount {workload.identity})"
    for kind in _CONTROLLERS:
        template = templates(view).get(ObjectKey(kind, namespace, name))
        if template is not None and template.identity != identity:
            return f" ({template} has the ServiceAccount {template.identity})"
    return ""


def _everybody(lint: Lint, target: TrafficTarget) -> Iterator[Problem]:
    if (crowd := _crowd(lint).value()) == MANY:
        return
    others = crowd - is_known(lint, target.destination)
    named = sum(is_known(lint, identity) for identity in set(target.sources) - {target.destination})
    if _FEW < others <= named:
        wanted = (
            "The sources are all other ServiceAccounts of the mesh. Remove the sources that "
            "need not call the destination."
        )
        code, number = Code.EVERYBODY, str(len(target.sources))
        yield _problem(lint.view, target, code, Severity.WARNING, "spec.sources", number, wanted)


def _problem(
    view: View,
    target: TrafficTarget,
    code: Code,
    severity: Severity,
    field: str,
    value: str,
    expected: str,
) -> Problem:
    key = ObjectKey.from_name(TRAFFIC_TARGET, target.key)
    return problem_of(view, key, code, severity, field, value, expected)
