"""Services of no one's mesh: where all of a cluster is read, what is not ours is nobody's problem.

OSM and Istio know a Service by the Pods behind it: of one whose Pods have no sidecars nothing is said.
A policy that names it, or one Pod with a sidecar among others, says that it is meant to be inside.
"""

from typing import Final

from catalog.lint.lint import IN_LINT, Lint
from catalog.lint.smi.reach import workloads_in
from catalog.lint.templates import behind
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.workloads import backing
from catalog.store.smi import splits_by_apex, splits_by_backend, targets_by_destination
from meshwright.engine.derived import derived
from meshwright.mesh.names import Namespace
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import Workload, WorkloadKey


def _meshed(_: WorkloadKey, found: Workload) -> tuple[Namespace, ...]:
    return () if found.uuid is None else (found.key.namespace,)


_sidecars_in: Final = IN_LINT.index("sidecars by namespace", lambda lint: lint.view.workloads, _meshed)


def is_unmeshed(lint: Lint, key: ServiceKey) -> bool:
    """Say whether a Service is in no one's mesh.

    That is one of which no policy speaks, nor an annotation with names in the DNS, and behind which there are
    workloads or endpoints, none with a sidecar; or nobody at all, in a namespace with workloads of which none
    has a sidecar.
    """
    view, there, service = lint.view, backing(lint.view, key), lint.view.services[key]
    if service.dns_names or any(each.uuid is not None for each in there) or behind(lint, key):
        return False
    if key in splits_by_apex(view) or key in splits_by_backend(view):
        return False
    if any(each.identity in targets_by_destination(view) for each in there):
        return False
    is_somewhere = any(endpoints(view, key, port) for port in service.ports)
    return bool(there) or is_somewhere or _has_no_sidecar(lint, key.namespace)


@derived
def _has_no_sidecar(lint: Lint, namespace: Namespace) -> bool:
    """Say whether a namespace has workloads, and none of them a sidecar."""
    return namespace in workloads_in(lint) and namespace not in _sidecars_in(lint)
