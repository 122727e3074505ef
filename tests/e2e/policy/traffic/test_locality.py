"""Tests of locality with real Envoys: near endpoints are preferred, with failover to others."""

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.policy.applications import UNWELL
from tests.e2e.policy.policies import ALL, EVERYTHING, Document, target, upstream_policy
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.topology import NET, documents
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

OPEN = (
    *EVERYTHING,
    target("one", "shop/v1", ("shop/client", "office/clerk"), *ALL),
    target("two", "shop/v2", ("shop/client", "office/clerk"), *ALL),
)
ZONES = {"client": "eu/a", "v1": "eu/a", "v2": "eu/b", "clerk": "us/a"}
CHECKED = {"http": {"path": "/well"}, "interval": "1s", "unhealthyThreshold": 1}


@pytest.fixture(autouse=True)
def healthy_applications() -> Iterator[None]:
    """Make every application healthy after the test."""
    yield
    UNWELL.clear()


def somewhere() -> list[Document]:
    """Return the workloads with their localities."""
    return [
        {**document, "spec": {**document["spec"], "locality": ZONES[document["metadata"]["name"]]}}
        for document in documents()
        if document["kind"] == "Workload" and document["metadata"]["name"] in ZONES
    ]


async def answered_by(mesh: PolicyMesh, caller: str, names: set[str]) -> None:
    """Wait until exactly these answer a caller."""

    async def is_so() -> bool:
        return set(await mesh.answering(caller, "both", 20)) == names

    await until(is_so, 30)


async def test_endpoint_in_the_zone_of_the_caller_is_preferred(mesh: PolicyMesh) -> None:
    """Without a policy both answer.

    With it the near one answers, the other one while the near one is unhealthy, and then the near one again.
    """
    await mesh.enforce(*OPEN, *somewhere())
    assert set(await mesh.answering("client", "both", 20)) == {"v1", "v2"}
    policy = upstream_policy("both", locality={"prefer": "Zone"}, healthCheck=CHECKED)
    await mesh.enforce(*OPEN, *somewhere(), policy)
    await answered_by(mesh, "client", {"v1"})
    assert await mesh.answering("client", "both", 40) == {"v1": 40}
    await answered_by(mesh, "clerk", {"v1", "v2"})
    UNWELL.add("v1")
    await answered_by(mesh, "client", {"v2"})
    UNWELL.clear()
    await answered_by(mesh, "client", {"v1"})


async def test_locality_without_failover_gives_503_to_a_caller_without_a_near_endpoint(
    mesh: PolicyMesh,
) -> None:
    """A caller with a near endpoint is answered only by that one."""
    policy = upstream_policy("both", locality={"prefer": "Zone", "failover": False})
    await mesh.enforce(*OPEN, *somewhere(), policy)
    assert await mesh.answering("client", "both", 20) == {"v1": 20}
    assert await mesh.answering("clerk", "both", 3) == {"503": 3}
    await mesh.enforce(*OPEN)
    assert set(await mesh.answering("client", "both", 20)) == {"v1", "v2"}


NOWHERE = f"{NET}.250"


def without_application() -> list[Document]:
    """Return the workloads; the one near the client has a proxy and no application."""
    return [_changed(item, "v1", applicationAddress=NOWHERE) for item in somewhere()]


def without_proxy() -> list[Document]:
    """Return the workloads and another one near the client, for which no program runs."""
    near = next(item for item in somewhere() if item["metadata"]["name"] == "v1")
    gone = _changed({**near, "metadata": {**near["metadata"], "name": "gone"}}, "gone", address=NOWHERE)
    v1 = {**near, "metadata": {**near["metadata"], "labels": {"v1": "yes"}}}
    return [*(v1 if item["metadata"]["name"] == "v1" else item for item in somewhere()), gone]


def _changed(workload: Document, name: str, **there: str) -> Document:
    if workload["metadata"]["name"] != name:
        return workload
    return {**workload, "spec": {**workload["spec"], "uuid": name, **there}}


@pytest.mark.parametrize("workloads", [without_application, without_proxy])
async def test_requests_are_retried_farther_away_if_the_near_endpoint_is_dead(
    mesh: PolicyMesh, workloads: Callable[[], list[Document]]
) -> None:
    """Without a health check, failed connections are retried at a farther endpoint, and no request fails."""
    policy = upstream_policy("both", locality={"prefer": "Zone"})
    await mesh.enforce(*OPEN, *workloads(), policy)
    assert await mesh.answering("client", "both", 40) == {"v2": 40}
