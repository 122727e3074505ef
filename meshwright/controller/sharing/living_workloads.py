"""Workloads of recorded proxies: in the mesh, and in the cluster outside it. For one event loop.

Membership in the mesh does not end a Pod. For example, when the namespace shop leaves the mesh, its Pods and
their agents run on with their certificates. They are still known when the namespace comes back.
"""

from collections.abc import Callable, Iterable

from catalog.store.inventory import has_proxy
from catalog.store.view import View
from certs.ledger.entry import LedgerEntry
from meshwright.enrolment.proofs.kubernetes import is_of_pod, pod_proof
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.workload import WorkloadKey

MayHavePod = Callable[[WorkloadKey, str], bool]
"""Return whether a Pod with this name and UID runs, or may run, in the mesh or outside it."""


def is_alive(
    view: View, may_have_pod: MayHavePod | None, name: ProxyName, entries: Iterable[LedgerEntry]
) -> bool:
    """Return whether a workload with this proxy exists, or may exist.

    The mesh has a workload with the proxy, or one of the Pods that have joined as the proxy may run.
    `entries` are the certificates of the proxy. `may_have_pod` is None on a server without a cluster, which
    knows no Pod outside the mesh.
    """
    if has_proxy(view, name):
        return True
    # A machine has no Pod, so the end of its certificate alone counts.
    return any(_may_run(may_have_pod, joined_by) for joined_by in {entry.joined_by for entry in entries})


def _may_run(may_have_pod: MayHavePod | None, joined_by: str) -> bool:
    if not is_of_pod(joined_by):
        return False
    proof = pod_proof(joined_by)
    return proof is None or may_have_pod is None or may_have_pod(proof.pod, proof.uid)
