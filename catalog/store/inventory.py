"""Indexes of workloads and EndpointSlices for the relations."""

from typing import Final

from catalog.store.precedence import age, health_rank
from catalog.store.view import IN_VIEW, View, kind, slices, workloads
from meshwright.engine.declarations import DeclaredPart
from meshwright.engine.table import Table
from meshwright.mesh.identity import ProxyName, SidecarKey
from meshwright.mesh.names import IpAddress, Namespace, ServiceName
from meshwright.mesh.objects import EndpointSlice, ObjectKey
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import PodTemplate, Workload, WorkloadKey

templates: Final[DeclaredPart[View, Table[ObjectKey, PodTemplate]]] = kind(PodTemplate, None, "pod templates")
"""Templates of future Pods, by the object that creates them; they are not endpoints."""


def _sidecars(_: WorkloadKey, workload: Workload) -> tuple[SidecarKey, ...]:
    return () if (claimed := workload.sidecar) is None else (claimed,)


def sliced_services(_: EndpointSlice, endpoint_slice: EndpointSlice) -> tuple[ServiceKey, ...]:
    """Return the service of an EndpointSlice, as a key of the index."""
    return (ServiceKey(endpoint_slice.namespace, ServiceName(endpoint_slice.service)),)


def _sliced_addresses(
    _: EndpointSlice, endpoint_slice: EndpointSlice
) -> tuple[tuple[Namespace, IpAddress], ...]:
    return tuple(
        dict.fromkeys((endpoint_slice.namespace, IpAddress(item)) for item, _ in endpoint_slice.healths)
    )


def _addresses(_: WorkloadKey, workload: Workload) -> tuple[IpAddress, ...]:
    # A shared address, as with hostNetwork, does not identify a workload.
    return () if workload.shares_address else workload.addresses


by_sidecar: Final = IN_VIEW.index("workloads by sidecar", workloads, _sidecars)
by_identity: Final = IN_VIEW.index("workloads by identity", workloads, lambda _, result: (result.identity,))
by_address: Final = IN_VIEW.index("workloads by address", workloads, _addresses)

slices_by_service: Final = IN_VIEW.index("slices by service", slices, sliced_services)
slices_by_address: Final = IN_VIEW.index("slices by address", slices, _sliced_addresses)


def claimant_of(view: View, sidecar: SidecarKey) -> Workload | None:
    """Return the workload with a UUID in a namespace; of several the healthiest, then the oldest."""
    result = [view.workloads[workload_key] for workload_key in by_sidecar(view).get(sidecar, ())]
    if len(result) < 2:
        return result[0] if result else None
    return min(
        result, key=lambda workload: (health_rank(workload.health), *age(workload.created), workload.key)
    )


def has_proxy(view: View, name: ProxyName) -> bool:
    """Return whether any workload has a sidecar with exactly this name, also one of several with its UUID."""
    return any(
        view.workloads[workload_key].proxy_name == name
        for workload_key in by_sidecar(view).get(name.sidecar, ())
    )


def holder_of(view: View, name: ProxyName) -> Workload | None:
    """Return the workload whose sidecar has exactly this name, or `None`."""
    workload = claimant_of(view, name.sidecar)
    return workload if workload is not None and workload.proxy_name == name else None
