"""Tests of TrafficSplits, for requests and for connections."""

from collections import Counter

import pytest

from tests.e2e.policy.applications import ECHO
from tests.e2e.policy.calls import NOBODY, load
from tests.e2e.policy.policies import ALL, EVERYTHING, http, path, routes, split, target
from tests.e2e.policy.running_mesh import PolicyMesh

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

OPEN = (
    *EVERYTHING,
    target("one", "shop/v1", ("shop/client",), *ALL),
    target("two", "shop/v2", ("shop/client",), *ALL),
)
MANY = 40


async def greeted(mesh: PolicyMesh, service: str) -> Counter[str]:
    """Return the answering servers of many connections."""
    return Counter([(await mesh.hello("client", service, ECHO)).partition(":")[0] for _ in range(MANY)])


async def test_split_sends_requests_to_both_backends(mesh: PolicyMesh) -> None:
    """Both backends answer for a service without workloads.

    Without the split, the service has no listener.
    """
    await mesh.enforce(*OPEN, split("s", "root", {"v1": 50, "v2": 50}))
    assert set(await mesh.answering("client", "root", MANY)) == {"v1", "v2"}
    await mesh.enforce(*OPEN)
    assert await mesh.get("client", "root") == NOBODY


async def test_backends_with_the_same_account_are_distinguished_by_service(mesh: PolicyMesh) -> None:
    """Weights apply to the services although both have the same identity."""
    await mesh.enforce(*OPEN, split("s", "root", {"v1": 1, "v1-again": 1}))
    assert set(await mesh.answering("client", "root", MANY)) == {"v1", "v1-again"}
    await mesh.enforce(*OPEN, split("s", "root", {"v1": 0, "v1-again": 1}))
    assert set(await mesh.answering("client", "root", MANY)) == {"v1-again"}


async def test_apex_can_be_its_own_backend(mesh: PolicyMesh) -> None:
    """As a backend, the apex means its own workloads."""
    await mesh.enforce(*OPEN, split("s", "web", {"web": 50, "v2": 50}))
    assert set(await mesh.answering("client", "web", MANY)) == {"v1", "v2"}
    await mesh.enforce(*OPEN, split("s", "web", {"web": 1, "v2": 0}))
    assert set(await mesh.answering("client", "web", MANY)) == {"v1"}


async def test_apex_workloads_get_no_requests_unless_they_are_a_backend(mesh: PolicyMesh) -> None:
    """Without the split, they get all requests."""
    await mesh.enforce(*OPEN, split("s", "web", {"v2": 1}))
    assert set(await mesh.answering("client", "web", MANY)) == {"v2"}
    assert set(await mesh.answering("client", "v1", 3)) == {"v1"}
    await mesh.enforce(*OPEN)
    assert set(await mesh.answering("client", "web", MANY)) == {"v1"}


async def test_split_applies_to_tcp_connections(mesh: PolicyMesh) -> None:
    """Connections are divided by weight like requests."""
    await mesh.enforce(*OPEN, split("s", "root", {"v1": 50, "v2": 50}))
    assert set(await greeted(mesh, "root")) == {"v1", "v2"}
    await mesh.enforce(*OPEN, split("s", "root", {"v1": 0, "v2": 50}))
    assert set(await greeted(mesh, "root")) == {"v2"}


async def test_splits_do_not_nest(mesh: PolicyMesh) -> None:
    """A backend that is itself an apex means its own workloads."""
    recursive = (split("outer", "root", {"web": 1}), split("inner", "web", {"v2": 1}))
    await mesh.enforce(*OPEN, *recursive)
    assert set(await mesh.answering("client", "root", MANY)) == {"v1"}
    assert set(await mesh.answering("client", "web", MANY)) == {"v2"}


async def test_backend_of_weight_zero_gets_no_requests(mesh: PolicyMesh) -> None:
    """A split whose weights are all zero is invalid, so the apex' own workloads answer."""
    for weights, wanted in (
        ({"v1": 100, "v2": 0}, {"v1"}),
        ({"v1": 0, "v2": 100}, {"v2"}),
        ({"v1": 1, "v2": 1}, {"v1", "v2"}),
        ({"v2": 0}, {"v1"}),
    ):
        await mesh.enforce(*OPEN, split("s", "web", weights))
        assert set(await mesh.answering("client", "web", MANY)) == wanted, weights


async def test_split_with_matches_takes_precedence_over_one_without(mesh: PolicyMesh) -> None:
    """A split grants no permission by itself: without permission for the backend, its requests get 503."""
    specific = split("testers", "root", {"v2": 1}, "testers")
    policy = (
        routes("testers", path("/test.*")),
        split("s", "root", {"v1": 1}),
        specific,
    )
    await mesh.enforce(*OPEN, *policy)
    assert (await mesh.get("client", "root", "/test/1")).by == "v2"
    assert (await mesh.get("client", "root", "/other")).by == "v1"
    only = target("one", "shop/v1", ("shop/client",), http("everything"))
    await mesh.enforce(*EVERYTHING, only, *policy)
    assert (await mesh.get("client", "root", "/test/1")).status == 503
    assert (await mesh.get("client", "root", "/other")).by == "v1"


async def test_weight_changes_under_load_fail_no_request(mesh: PolicyMesh) -> None:
    """Weights change from one version to the other, to both and back."""

    async def call() -> str:
        answer = await mesh.get("client", "root")
        return answer.by if answer.status == 200 else f"failed: {answer}"

    await mesh.enforce(*OPEN, split("s", "root", {"v1": 100, "v2": 0}))
    async with load(call) as running:
        assert set(await running.more(MANY)) == {"v1"}
        for weights, wanted in (
            ({"v1": 0, "v2": 100}, {"v2"}),
            ({"v1": 50, "v2": 50}, {"v1", "v2"}),
            ({"v1": 100, "v2": 0}, {"v1"}),
        ):
            await mesh.enforce(*OPEN, split("s", "root", weights))
            assert set(await running.more(MANY)) == wanted, weights
    assert set(running.every) == {"v1", "v2"}, running.every
