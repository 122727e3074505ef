"""Retry objects at real Envoys: how often a request comes to the callee, as its own sidecar counts it."""

import pytest

from tests.e2e.policy.applications import HTTP
from tests.e2e.policy.policies import (
    ALL,
    EVERYTHING,
    PERMISSIVE,
    Document,
    retry,
    split,
    target,
    upstream_traffic,
)
from tests.e2e.policy.running import PolicyMesh

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

OPEN = (
    *EVERYTHING,
    target("one", "shop/v1", ("shop/client", "office/clerk"), *ALL),
    target("two", "shop/v2", ("shop/client", "office/clerk"), *ALL),
)
FAST = {"retryBackoffBaseInterval": "1ms"}
FIVE = {**FAST, "retryOn": "5xx", "numRetries": 5}


async def tries(
    mesh: PolicyMesh, caller: str, path: str, service: str = "v1", by: str = "v1"
) -> tuple[int, int]:
    """Return the status of a request, and how often it came to the application."""
    counter = f"cluster.shop/{by}.{HTTP}.local.upstream_rq_total"
    before = await mesh.live.stat(by, counter)
    answer = await mesh.get(caller, service, path)
    return answer.status, await mesh.live.stat(by, counter) - before


def by_client(policy: Document, *services: str) -> Document:
    """Make a Retry of the client."""
    return retry("r", "shop/client", services or ("v1",), policy)


async def test_how_often_a_request_is_tried(mesh: PolicyMesh) -> None:
    """Once and five times more; what the policy does not name once, nor others' calls."""
    await mesh.enforce(*OPEN, by_client(FIVE))
    counter = f"cluster.shop/v1.{HTTP}.upstream_rq_retry$"
    before = await mesh.live.stat("client", counter)
    assert await tries(mesh, "client", "/status/503") == (503, 6)
    assert await mesh.live.stat("client", counter) - before == 5
    assert await mesh.live.stat("client", f"cluster.shop/v1.{HTTP}.upstream_rq_retry_limit_exceeded") >= 1
    assert await tries(mesh, "client", "/status/404") == (404, 1)
    assert await tries(mesh, "client", "/") == (200, 1)
    assert await tries(mesh, "clerk", "/status/503") == (503, 1)
    assert await tries(mesh, "client", "/status/503", "v2", "v2") == (503, 1)


async def test_as_many_at_one_time_as_a_setting_says(mesh: PolicyMesh) -> None:
    """None with `maxRetries: 0`: the first answer is the caller's, and the overflow is counted."""
    counter = f"cluster.shop/v1.{HTTP}.upstream_rq_retry_overflow"
    for answer, wanted in ((0, 1), (1, 6)):
        limits = upstream_traffic("v1", connectionSettings={"http": {"maxRetries": answer}})
        await mesh.enforce(*OPEN, by_client(FIVE), limits)
        before = await mesh.live.stat("client", counter)
        assert await tries(mesh, "client", "/status/503") == (503, wanted)
        assert await mesh.live.stat("client", counter) - before == (answer == 0)


async def test_once_and_never(mesh: PolicyMesh) -> None:
    """Where a number is not said it is one; it may be none."""
    await mesh.enforce(*OPEN, by_client({**FAST, "retryOn": "5xx"}))
    assert await tries(mesh, "client", "/status/500") == (500, 2)
    await mesh.enforce(*OPEN, by_client({**FIVE, "numRetries": 0}))
    assert await tries(mesh, "client", "/status/500") == (500, 1)
    await mesh.enforce(*OPEN)
    assert await tries(mesh, "client", "/status/500") == (500, 1)


async def test_what_is_tried_again(mesh: PolicyMesh) -> None:
    """A gateway's errors and no others; a conflict; several words."""
    for on, statuses in (
        ("gateway-error", {500: 1, 502: 3, 503: 3, 504: 3}),
        ("retriable-4xx", {404: 1, 409: 3, 503: 1}),
        ("gateway-error, retriable-4xx", {404: 1, 409: 3, 503: 3}),
    ):
        await mesh.enforce(*OPEN, by_client({**FAST, "retryOn": on, "numRetries": 2}))
        result = {status: (await tries(mesh, "client", f"/status/{status}"))[1] for status in statuses}
        assert result == statuses, on


async def test_a_try_that_takes_too_long(mesh: PolicyMesh) -> None:
    """It is given up, and the next is made; at the end it is a 504."""
    slow = {**FIVE, "numRetries": 2, "perTryTimeout": "50ms"}
    await mesh.enforce(*OPEN, by_client(slow))
    assert await tries(mesh, "client", "/never") == (504, 3)


async def test_a_denial_is_no_failure(mesh: PolicyMesh) -> None:
    """What policy denies is not asked for again."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("office/clerk",), *ALL), by_client(FIVE))
    assert (await mesh.get("client", "v1")).status != 200
    assert (await tries(mesh, "clerk", "/"))[0] == 200


async def test_the_apex_of_a_split_is_called(mesh: PolicyMesh) -> None:
    """Its Retry holds whoever answers, and no backend's own does."""
    halves = split("s", "root", {"v2": 1})
    await mesh.enforce(*OPEN, halves, by_client(FIVE, "root"))
    assert await tries(mesh, "client", "/status/503", "root", "v2") == (503, 6)
    await mesh.enforce(*OPEN, halves, by_client(FIVE, "v2"))
    assert await tries(mesh, "client", "/status/503", "root", "v2") == (503, 1)


async def test_in_a_permissive_mesh(mesh: PolicyMesh) -> None:
    """The one tries again, the other has what all have."""
    await mesh.enforce(PERMISSIVE, by_client(FIVE))
    assert await tries(mesh, "client", "/status/503") == (503, 6)
    assert await tries(mesh, "clerk", "/status/503") == (503, 1)
