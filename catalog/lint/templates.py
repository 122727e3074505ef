"""Pods to come: who would stand behind a Service, and where, once controllers have made their pods.

Nothing of it is an endpoint. It tells policy that waits for its pods from policy that names nobody.
"""

from catalog.lint.indexes import Lint
from catalog.relations.endpoints import endpoints
from catalog.relations.ports import served, target_number
from catalog.store.index import telling_label
from engine.derived import derived
from mesh.identity import ServiceIdentity
from mesh.names import Port
from mesh.service import Protocol, Service, ServiceKey, ServicePort
from mesh.workload import PodTemplate


@derived
def behind(lint: Lint, key: ServiceKey) -> tuple[PodTemplate, ...]:
    """Return the templates whose pods a Service selects, sorted by key."""
    service = lint.view.services.get(key)
    label = None if service is None else telling_label(service)
    if service is None or label is None:
        return ()
    return tuple(each for each in lint.templates_by_label.get(label, ()) if each.has_labels(service.selector))


@derived
def ports_to_come(lint: Lint, identity: ServiceIdentity) -> tuple[tuple[Port, Protocol], ...]:
    """Return the ports at which pods to come of an identity are called, and what they speak; sorted."""
    found: set[tuple[Port, Protocol]] = set()
    for template in lint.templates_by_identity.get(identity, ()):
        called = served(_services_of(lint, template), template.ports)
        found.update((number, protocol) for number, protocol, _ in called)
    return tuple(sorted(found))


def answering(lint: Lint, key: ServiceKey, port: ServicePort) -> frozenset[tuple[ServiceIdentity, Port]]:
    """Return who answers at a Service's port, or is going to, and at which number."""
    now = {
        (each.identity, each.port) for each in endpoints(lint.view, key, port) if each.identity is not None
    }
    to_come = {
        (each.identity, number)
        for each in behind(lint, key)
        if (number := target_number(port, each.ports)) is not None
    }
    return frozenset(now | to_come)


def named_in_vain(templates: tuple[PodTemplate, ...], service: Service) -> tuple[ServicePort, ...]:
    """Return the ports of a Service whose target is a name that no template's containers have."""
    return tuple(
        port for port in service.ports if all(target_number(port, each.ports) is None for each in templates)
    )


def _services_of(lint: Lint, template: PodTemplate) -> tuple[Service, ...]:
    """Return the Services that select a template's pods."""
    view, namespace = lint.view, template.key.namespace
    candidates = {
        key
        for name, value in template.labels
        for key in view.services_by_label.get((namespace, name, value), ())
    }
    found = (view.services[key] for key in sorted(candidates))
    return tuple(each for each in found if template.has_labels(each.selector))
