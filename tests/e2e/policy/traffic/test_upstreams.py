"""Tests of UpstreamPolicies with real Envoys: load balancing and outlier ejection."""

import pytest

from tests.e2e.policy.applications import HTTP
from tests.e2e.policy.policies import ALL, EVERYTHING, PERMISSIVE, Document, split, target, upstream_policy
from tests.e2e.policy.running_mesh import PolicyMesh

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

OPEN = (
    *EVERYTHING,
    target("one", "shop/v1", ("shop/client", "office/clerk"), *ALL),
    target("two", "shop/v2", ("shop/client", "office/clerk"), *ALL),
)
BOTH = {"v1", "v2"}


def hashed(service: str, **key: object) -> Document:
    """Return a policy with a consistent hash."""
    return upstream_policy(service, loadBalancing={"policy": "ConsistentHash", "hash": key})


async def by_user(mesh: PolicyMesh, caller: str, service: str, users: range) -> dict[int, set[str]]:
    """Return the servers that answer each user, with three requests each."""
    result: dict[int, set[str]] = {}
    for user in users:
        headers = {"x-user": f"user-{user}"}
        answers = [await mesh.get(caller, service, headers=headers) for _ in range(3)]
        result[user] = {answer.by for answer in answers}
    return result


async def test_same_hash_key_is_always_answered_by_the_same_endpoint(mesh: PolicyMesh) -> None:
    """All callers agree, in both modes. Without a policy, or without the key, both endpoints answer."""
    users = range(20)
    for base in (OPEN, (PERMISSIVE,)):
        await mesh.enforce(*base)
        plain = await by_user(mesh, "client", "both", users)
        assert any(len(item) > 1 for item in plain.values())
        await mesh.enforce(*base, hashed("both", header="X-User"))
        mine = await by_user(mesh, "client", "both", users)
        assert all(len(item) == 1 for item in mine.values())
        assert set().union(*mine.values()) == BOTH
        assert await by_user(mesh, "clerk", "both", users) == mine
        assert set(await mesh.answering("client", "both", 40)) == BOTH


async def test_removed_endpoint_moves_only_its_own_hash_keys(mesh: PolicyMesh) -> None:
    """When the endpoint returns, each key is answered by the same endpoint as before."""
    users = range(20)
    await mesh.enforce(*OPEN, hashed("both", header="x-user"))
    before = await by_user(mesh, "client", "both", users)
    await mesh.enforce(*OPEN[:-1], hashed("both", header="x-user"))
    after = await by_user(mesh, "client", "both", users)
    assert set().union(*after.values()) == {"v1"}
    await mesh.enforce(*OPEN, hashed("both", header="x-user"))
    assert await by_user(mesh, "client", "both", users) == before


async def test_query_parameter_can_be_the_hash_key(mesh: PolicyMesh) -> None:
    """Only the value of that parameter decides."""
    await mesh.enforce(*OPEN, hashed("both", query="q"))
    result = [
        {(await mesh.get("client", "both", f"/?other={n}&q={value}")).by for n in range(3)}
        for value in range(12)
    ]
    assert all(len(item) == 1 for item in result)
    assert set().union(*result) == BOTH


async def test_random_and_least_request_policies_use_all_endpoints(mesh: PolicyMesh) -> None:
    """Both endpoints answer with either policy."""
    for policy in ("Random", "LeastRequest"):
        await mesh.enforce(*OPEN, upstream_policy("both", loadBalancing={"policy": policy}))
        assert set(await mesh.answering("client", "both", 40)) == BOTH


async def test_endpoint_that_answers_500_is_ejected_only_with_outlier_detection(mesh: PolicyMesh) -> None:
    """Behind a split, the backend's own policy applies.

    By default, an application's status is no reason for ejection.
    """
    name = f"cluster.shop/both.{HTTP}.outlier_detection.ejections_enforced_consecutive_5xx"
    ejecting = {"consecutiveServerErrors": 3, "baseEjectionTime": "5m", "maxEjectionPercent": 100}
    left = upstream_policy("both", outlierDetection=ejecting)
    apart = split("s", "root", {"both": 1})
    for base in ((), (left,)):
        await mesh.enforce(*OPEN, apart, *base)
        before = await mesh.live.stat("client", name)
        for _ in range(12):
            await mesh.get("client", "root", "/status/500")
        assert (await mesh.live.stat("client", name) - before > 0) is bool(base)
    await mesh.enforce(*OPEN)
