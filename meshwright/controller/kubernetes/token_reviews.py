"""Proof by ServiceAccount token, with the cluster's API server as judge and the view for Pods.

A server without a cluster does not import this module.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from catalog.store.view import View
from meshwright.enrolment.proofs.contract import ProofUndecided
from meshwright.enrolment.proofs.kubernetes import KubernetesProof, PodIdentity
from meshwright.kube.api import Api
from meshwright.kube.errors import KubeError
from meshwright.kube.resource import Resource
from meshwright.mesh.workload import WorkloadKey

TOKEN_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)


def kubernetes_proof(api: Api, view: Callable[[], View | None]) -> KubernetesProof:
    """Return the check of ServiceAccount tokens: the API server reviews a token, the view has its Pod."""

    async def review(token_review: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await api.create(TOKEN_REVIEWS, None, token_review)
        except KubeError as error:
            raise ProofUndecided(f"the API server has not judged the token: {error}") from error

    def seen_as(pod: WorkloadKey) -> PodIdentity | None:
        newest = view()
        workload = None if newest is None else newest.workloads.get(pod)
        return (
            None
            if workload is None
            else PodIdentity(workload.identity, workload.uid, workload.node, workload.proxy_name)
        )

    return KubernetesProof(review, seen_as)
