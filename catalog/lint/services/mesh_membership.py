"""Services outside the mesh, for which lint reports no problems.

A server reading a whole cluster sees many Services without relation to the mesh. As in OSM and Istio, the
Pods of a Service decide: without sidecars the Service is outside. A policy for the Service, or one Pod with a
sidecar, makes it a Service of the mesh.
"""

from typing import Final

from catalog.lint.lint import IN_LINT, Lint
from catalog.lint.smi.reach import workloads_in
from catalog.lint.templates import behind
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.workloads import backing
from catalog.relations.route_reach import attached_routes, services_leading_to
from catalog.store.smi import splits_by_apex, splits_by_backend, targets_by_destination
from meshwright.engine.derived import derived
from meshwright.mesh.names import Namespace
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import Workload, WorkloadKey


def _meshed(_: WorkloadKey, workload: Workload) -> tuple[Namespace, ...]:
    return () if workload.uuid is None else (workload.key.namespace,)


_sidecars_in: Final = IN_LINT.index("sidecars by namespace", lambda lint: lint.view.workloads, _meshed)


def is_unmeshed(lint: Lint, key: ServiceKey) -> bool:
    """Return whether a Service is outside the mesh.

    A Service is in the mesh if a policy or an annotation with DNS names refers to it, or if one of its
    workloads has a sidecar. A Service without workloads and endpoints is outside the mesh if its namespace
    has only workloads without sidecars.
    """
    view, there, service = lint.view, backing(lint.view, key), lint.view.services[key]
    if service.dns_names or any(workload.uuid is not None for workload in there) or behind(lint, key):
        return False
    if key in splits_by_apex(view) or key in splits_by_backend(view):
        return False
    # Routes with other parents alone, for example Gateways, are not of this mesh.
    if attached_routes(view, key) or any(services_leading_to(view, key)):
        return False
    if any(workload.identity in targets_by_destination(view) for workload in there):
        return False
    is_somewhere = any(endpoints(view, key, port) for port in service.ports)
    return bool(there) or is_somewhere or _has_no_sidecar(lint, key.namespace)


@derived
def _has_no_sidecar(lint: Lint, namespace: Namespace) -> bool:
    """Return whether a namespace has only workloads without sidecars, and at least one."""
    return namespace in workloads_in(lint) and namespace not in _sidecars_in(lint)
