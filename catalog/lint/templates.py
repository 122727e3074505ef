"""Future Pods: workloads and ports of a Service after the controllers have created their Pods.

Pod templates are not endpoints. They only separate policy waiting for Pods from policy with wrong names.
"""

from collections.abc import Sequence
from typing import Final

from catalog.lint.lint import IN_LINT, Lint
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.ports import served, target_number
from catalog.relations.backends.workloads import Label, services_by_label, telling_label
from catalog.store.inventory import templates
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort
from meshwright.mesh.workload import PodTemplate, Workload


def _labels(_: ObjectKey, template: PodTemplate) -> tuple[Label, ...]:
    return tuple((template.key.namespace, name, value) for name, value in template.labels)


def _identity(_: ObjectKey, template: PodTemplate) -> tuple[ServiceIdentity, ...]:
    return (template.identity,)


_by_label: Final = IN_LINT.index("pod templates by label", lambda lint: templates(lint.view), _labels)
by_identity_to_come: Final = IN_LINT.index(
    "pod templates by identity", lambda lint: templates(lint.view), _identity
)


@derived
def behind(lint: Lint, key: ServiceKey) -> tuple[PodTemplate, ...]:
    """Return the templates of the pods selected by a Service, sorted by key."""
    service = lint.view.services.get(key)
    label = None if service is None else telling_label(service)
    if service is None or label is None:
        return ()
    return tuple(
        pod_template
        for pod_template in _by_label(lint).lookup(label)
        if pod_template.has_labels(service.selector)
    )


@derived
def future_ports(lint: Lint, identity: ServiceIdentity) -> tuple[tuple[Port, Protocol], ...]:
    """Return the target ports of future Pods of an identity with their protocols, sorted."""
    result: set[tuple[Port, Protocol]] = set()
    for template in by_identity_to_come(lint).lookup(identity):
        called = served(_services_of(lint, template), template.ports)
        result.update((number, protocol) for number, protocol, _ in called)
    return tuple(sorted(result))


def answering(lint: Lint, key: ServiceKey, port: ServicePort) -> frozenset[tuple[ServiceIdentity, Port]]:
    """Return the identities answering at a Service's port with port numbers, now or with future Pods."""
    # Pods that do not exist yet count, so that policy may be applied before the workloads without warnings.
    now = {
        (endpoint.identity, endpoint.port)
        for endpoint in endpoints(lint.view, key, port)
        if endpoint.identity is not None
    }
    to_come = {
        (pod_template.identity, number)
        for pod_template in behind(lint, key)
        if (number := target_number(port, pod_template.ports)) is not None
    }
    return frozenset(now | to_come)


def named_in_vain(there: Sequence[PodTemplate | Workload], service: Service) -> tuple[ServicePort, ...]:
    """Return the ports of a Service with a target name unknown in `there`; empty without workloads."""
    return tuple(
        port
        for port in service.ports
        if there and all(target_number(port, item.ports) is None for item in there)
    )


def _services_of(lint: Lint, template: PodTemplate) -> tuple[Service, ...]:
    """Return the Services with a selector that fits a template's Pods."""
    view, namespace = lint.view, template.key.namespace
    candidates = {
        key
        for name, value in template.labels
        for key in services_by_label(view).get((namespace, name, value), ())
    }
    result = (view.services[key] for key in sorted(candidates))
    return tuple(service for service in result if template.has_labels(service.selector))
