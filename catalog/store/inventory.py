"""Workloads and slices in a view: what several relations find them by."""

from typing import Final

from catalog.store.view import IN_VIEW, View, kind, slices, workloads
from engine.declared import Declared
from engine.table import Table
from mesh.names import IpAddress, Namespace, ProxyUuid, ServiceName
from mesh.objects import EndpointSlice, ObjectKey
from mesh.service import ServiceKey
from mesh.workload import PodTemplate, Workload, WorkloadKey

templates: Final[Declared[View, Table[ObjectKey, PodTemplate]]] = kind(PodTemplate, None, "pod templates")
"""Pods to come, by the object that they will be made from; they back nothing."""


def _uuids(_: WorkloadKey, workload: Workload) -> tuple[ProxyUuid, ...]:
    return () if workload.uuid is None else (workload.uuid,)


def sliced_services(_: EndpointSlice, found: EndpointSlice) -> tuple[ServiceKey, ...]:
    """Find a slice by its service."""
    return (ServiceKey(found.namespace, ServiceName(found.service)),)


def _sliced_addresses(_: EndpointSlice, found: EndpointSlice) -> tuple[tuple[Namespace, IpAddress], ...]:
    return tuple(dict.fromkeys((found.namespace, IpAddress(each)) for each, _ in found.healths))


def _addresses(_: WorkloadKey, workload: Workload) -> tuple[IpAddress, ...]:
    return () if workload.shares_address else workload.addresses


by_uuid: Final = IN_VIEW.index("workloads by UUID", workloads, _uuids)
by_identity: Final = IN_VIEW.index("workloads by identity", workloads, lambda _, found: (found.identity,))
by_address: Final = IN_VIEW.index("workloads by address", workloads, _addresses)

slices_by_service: Final = IN_VIEW.index("slices by service", slices, sliced_services)
slices_by_address: Final = IN_VIEW.index("slices by address", slices, _sliced_addresses)


def holder_of(view: View, uuid: ProxyUuid) -> Workload | None:
    """Return the workload that has a UUID: of two that claim one, the first by key."""
    keys = by_uuid(view).get(uuid, ())
    return view.workloads[keys[0]] if keys else None
