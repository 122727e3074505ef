"""Membership of Services in the mesh: policy decides about calls to members; other Services are outside.

A Service is a member if one of these holds:

- The mesh gave the Service its address.
- A TrafficSplit has the Service as its apex.
- A producer route of the Gateway API is in force at the Service.
- The Service has workloads, and each has a sidecar.

Any other Service, such as `default/kubernetes` or an external database, is outside the mesh: an Egress or
`enableEgress` allows calls to it. Sidecars, lint and explain all use this one definition.
"""

from catalog.relations.backends.workloads import backing
from catalog.relations.outside import service_called
from catalog.relations.route_reach import attached_routes
from catalog.store.inventory import by_address, slices_by_service
from catalog.store.smi import splits_by_apex
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.names import IpAddress, Namespace
from meshwright.mesh.service import ServiceKey


@derived
def belongs_to_the_mesh(view: View, key: ServiceKey) -> bool:
    """Return whether a Service is a member of the mesh; False for a missing one."""
    service = view.services.get(key)
    if service is None:
        return False
    has_its_address_from_the_mesh = service.cluster_ip is None and not service.headless
    if has_its_address_from_the_mesh or key in splits_by_apex(view) or _has_producer_routes(view, key):
        return True
    behind = backing(view, key)
    return bool(behind) and all(workload.uuid is not None for workload in behind)


def _has_producer_routes(view: View, key: ServiceKey) -> bool:
    # A consumer route must not change the calls of other namespaces.
    return any(route.namespace == key.namespace for route in attached_routes(view, key))


@derived
def has_outsiders(view: View, key: ServiceKey) -> bool:
    """Return whether a Service has a workload without a sidecar, or an address of an unknown workload."""
    if any(workload.uuid is None for workload in backing(view, key)):
        return True
    addresses = (
        address
        for endpoint_slice in slices_by_service(view).lookup(key)
        for address, _ in endpoint_slice.healths
    )
    # An address in a slice without any workload there is a place outside the mesh, for example a database.
    return any(not by_address(view).get(IpAddress(address), ()) for address in addresses)


def service_of_the_mesh(view: View, host: str, namespace: Namespace) -> ServiceKey | None:
    """Return the Service of the mesh behind a host or address, as seen from a namespace, or `None`."""
    key = service_called(view, host, namespace)
    return key if key is not None and belongs_to_the_mesh(view, key) else None
