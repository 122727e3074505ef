"""Test of a workload that restricts the services configured in its sidecar."""

import pytest

from tests.e2e.policy.policies import PERMISSIVE, Document
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.topology import documents
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]


def narrowed(to: str) -> Document:
    """Return the client's workload with this restriction."""
    (client,) = (
        document
        for document in documents()
        if (document["kind"], document["metadata"]["name"]) == ("Workload", "client")
    )
    annotations = {"meshwright.dev/egress-services": to}
    return {**client, "metadata": {**client["metadata"], "annotations": annotations}}


async def reached(mesh: PolicyMesh, caller: str, *expected: str) -> None:
    """Wait until exactly these of both services answer a caller; the others have no listener."""

    async def are() -> bool:
        answers = [await mesh.get(caller, name) for name in ("v1", "v2")]
        return [answer.by if answer.status else 0 for answer in answers] == [
            name if name in expected else 0 for name in ("v1", "v2")
        ]

    await until(are, 20)


async def test_egress_services_annotation_restricts_only_its_own_sidecar(mesh: PolicyMesh) -> None:
    """The annotation removes services also in permissive mode.

    It applies only to the annotated workload, and never permits a service.
    """
    await mesh.enforce(PERMISSIVE)
    await reached(mesh, "client", "v1", "v2")
    clusters = "cluster_manager.active_clusters"
    every = await mesh.live.stat("client", clusters)
    await mesh.enforce(PERMISSIVE, narrowed("shop/v1"))
    await reached(mesh, "client", "v1")
    await reached(mesh, "clerk", "v1", "v2")
    assert await mesh.live.stat("client", clusters) < every
    await mesh.enforce(PERMISSIVE, narrowed("none"))
    await reached(mesh, "client")
    await mesh.enforce(narrowed("*/*"))
    await reached(mesh, "client")
    await mesh.enforce(PERMISSIVE)
    await reached(mesh, "client", "v1", "v2")
