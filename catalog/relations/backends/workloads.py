"""Relation of workloads and services, from both sides."""

from typing import Final

from catalog.store.inventory import (
    by_address,
    by_identity,
    sliced_services,
    slices_by_address,
    slices_by_service,
)
from catalog.store.view import IN_VIEW, View, services, workloads
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace
from meshwright.mesh.service import Service, ServiceKey
from meshwright.mesh.workload import Workload, WorkloadKey

Label = tuple[Namespace, str, str]
"""A label in one namespace: namespace, name, value."""


def telling_label(service: Service) -> Label | None:
    """Return the label of a service's selector under which the service is indexed; `None` without a selector.

    One label must be chosen, because a label that all workloads have would tie every service to every
    workload. A label whose value is the service's name is likely to be its own; else the first is taken.
    """
    if not service.selector:
        return None
    name, value = min(service.selector, key=lambda pair: (pair[1] != service.key.name, pair))
    return (service.key.namespace, name, value)


def _telling(_: ServiceKey, service: Service) -> tuple[Label, ...]:
    label = telling_label(service)
    return () if label is None else (label,)


def _labels(key: WorkloadKey, workload: Workload) -> tuple[Label, ...]:
    return tuple((key.namespace, name, value) for name, value in workload.labels)


def _primaries(key: WorkloadKey, workload: Workload) -> tuple[ServiceKey, ...]:
    return (ServiceKey(key.namespace, workload.service),)


services_by_label: Final = IN_VIEW.index("services by label", services, _telling)
_by_label: Final = IN_VIEW.index("workloads by label", workloads, _labels)
_by_primary: Final = IN_VIEW.index("workloads by primary", workloads, _primaries)


@derived
def backing(view: View, key: ServiceKey) -> tuple[Workload, ...]:
    """Return the workloads of a service, sorted by key.

    A workload belongs to every Service of its namespace whose selector matches its labels, every Service
    without selector with the name of its primary service, and every Service with its address in an
    EndpointSlice. If a Service without selector has slices, the ServiceAccount of a Pod does not make the Pod
    part of it.
    """
    service = view.services.get(key)
    if service is None:
        return ()
    label = telling_label(service)
    candidates = _by_label(view).get(label, ()) if label is not None else _by_primary(view).get(key, ())
    chosen = {candidate for candidate in candidates if _chosen(view, view.workloads[candidate], service)}
    for endpoint_slice in slices_by_service(view).lookup(key):
        for address, _ in endpoint_slice.healths:
            there = by_address(view).get(IpAddress(address), ())
            chosen.update(workload_key for workload_key in there if workload_key.namespace == key.namespace)
    return tuple(view.workloads[workload_key] for workload_key in sorted(chosen))


@derived
def services_of(view: View, key: WorkloadKey) -> tuple[ServiceKey, ...]:
    """Return the services of a workload, sorted."""
    workload = view.workloads.get(key)
    if workload is None:
        return ()
    candidates = {ServiceKey(key.namespace, workload.service)}
    for name, value in workload.labels:
        candidates.update(services_by_label(view).get((key.namespace, name, value), ()))
    service_keys = {
        candidate
        for candidate in candidates
        if (service := view.services.get(candidate)) is not None and _chosen(view, workload, service)
    }
    for address in () if workload.shares_address else workload.addresses:
        for endpoint_slice in slices_by_address(view).get((key.namespace, address), ()):
            service_keys.update(
                service
                for service in sliced_services(endpoint_slice, endpoint_slice)
                if service in view.services
            )
    return tuple(sorted(service_keys))


@derived
def services_of_identity(view: View, identity: ServiceIdentity) -> tuple[ServiceKey, ...]:
    """Return the services of all workloads of an identity, sorted."""
    keys = by_identity(view).get(identity, ())
    return tuple(sorted({service for key in keys for service in services_of(view, key)}))


def _chosen(view: View, workload: Workload, service: Service) -> bool:
    """Return whether a service of the workload's namespace selects it, or is its primary service."""
    if service.selector:
        return workload.has_labels(service.selector)
    if workload.service != service.key.name:
        return False
    # With slices their author decides; an account of the same name may be a coincidence.
    return workload.names_service or not slices_by_service(view).get(service.key, ())
