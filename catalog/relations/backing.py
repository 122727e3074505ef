"""Which workloads stand behind which services: one relation, looked at from both sides."""

from typing import TYPE_CHECKING

from catalog.store.index import sliced_services, telling_label
from engine.derived import derived
from mesh.identity import ServiceIdentity
from mesh.names import IpAddress
from mesh.service import Service, ServiceKey
from mesh.workload import Workload, WorkloadKey

if TYPE_CHECKING:
    from catalog.store.view import View


@derived
def backing(view: "View", key: ServiceKey) -> tuple[Workload, ...]:
    """Return the workloads behind a service, sorted by key (see View for when one is)."""
    service = view.services.get(key)
    if service is None:
        return ()
    label = telling_label(service)
    candidates = view.by_label.get(label, ()) if label is not None else view.by_primary.get(key, ())
    chosen = {each for each in candidates if _chosen(view.workloads[each], service)}
    for found in view.slices.get(key, ()):
        for address in found.addresses:
            there = view.by_address.get(IpAddress(address), ())
            chosen.update(each for each in there if each.namespace == key.namespace)
    return tuple(view.workloads[each] for each in sorted(chosen))


@derived
def services_of(view: "View", key: WorkloadKey) -> tuple[ServiceKey, ...]:
    """Return the services that a workload stands behind, sorted."""
    workload = view.workloads.get(key)
    if workload is None:
        return ()
    candidates = {ServiceKey(key.namespace, workload.service)}
    for name, value in workload.labels:
        candidates.update(view.services_by_label.get((key.namespace, name, value), ()))
    found = {
        each
        for each in candidates
        if (service := view.services.get(each)) is not None and _chosen(workload, service)
    }
    for each in view.slices_by_address.get((key.namespace, workload.address), ()):
        found.update(service for service in sliced_services(each, each) if service in view.services)
    return tuple(sorted(found))


@derived
def services_of_identity(view: "View", identity: ServiceIdentity) -> tuple[ServiceKey, ...]:
    """Return the services that some workload of an identity stands behind, sorted."""
    workloads = view.by_identity.get(identity, ())
    return tuple(sorted({service for key in workloads for service in view.services_of.get(key, ())}))


def _chosen(workload: Workload, service: Service) -> bool:
    """Say whether a service of the workload's namespace selects it, or without a selector is its primary."""
    if service.selector:
        return workload.has_labels(service.selector)
    return workload.service == service.key.name
