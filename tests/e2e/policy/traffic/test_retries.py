"""Tests of Retry objects with real Envoys: the callee's sidecar counts the attempts."""

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
FAST = {"retryBackoffBaseInterval": "1ms"}
FIVE = {**FAST, "retryOn": "5xx", "numRetries": 5}


async def tries(
    mesh: PolicyMesh, caller: str, path: str, service: str = "v1", by: str = "v1"
) -> tuple[int, int]:
    """Return the status of a request and the number of attempts that reached the application."""
    counter = f"cluster.shop/{by}.{HTTP}.local.upstream_rq_total"
    before = await mesh.live.stat(by, counter)
    answer = await mesh.get(caller, service, path)
    return answer.status, await mesh.live.stat(by, counter) - before


def by_client(policy: Document, *services: str) -> Document:
    """Return a Retry of the client."""
    return retry("r", "shop/client", services or ("v1",), policy)


async def test_failed_request_is_retried_as_often_as_the_retry_says(mesh: PolicyMesh) -> None:
    """One attempt and five retries. Other statuses, callers and services have one attempt."""
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


async def test_concurrent_retries_are_limited_by_max_retries(mesh: PolicyMesh) -> None:
    """With `maxRetries: 0` the first response is returned, and the overflow is counted."""
    counter = f"cluster.shop/v1.{HTTP}.upstream_rq_retry_overflow"
    for answer, wanted in ((0, 1), (1, 6)):
        limits = upstream_traffic("v1", connectionSettings={"http": {"maxRetries": answer}})
        await mesh.enforce(*OPEN, by_client(FIVE), limits)
        before = await mesh.live.stat("client", counter)
        assert await tries(mesh, "client", "/status/503") == (503, wanted)
        assert await mesh.live.stat("client", counter) - before == (answer == 0)


async def test_number_of_retries_is_one_by_default_and_may_be_zero(mesh: PolicyMesh) -> None:
    """Without a Retry, there is one attempt."""
    await mesh.enforce(*OPEN, by_client({**FAST, "retryOn": "5xx"}))
    assert await tries(mesh, "client", "/status/500") == (500, 2)
    await mesh.enforce(*OPEN, by_client({**FIVE, "numRetries": 0}))
    assert await tries(mesh, "client", "/status/500") == (500, 1)
    await mesh.enforce(*OPEN)
    assert await tries(mesh, "client", "/status/500") == (500, 1)


async def test_retry_conditions_select_the_statuses_that_are_retried(mesh: PolicyMesh) -> None:
    """Tested are gateway errors, conflicts, and a list of both."""
    for on, statuses in (
        ("gateway-error", {500: 1, 502: 3, 503: 3, 504: 3}),
        ("retriable-4xx", {404: 1, 409: 3, 503: 1}),
        ("gateway-error, retriable-4xx", {404: 1, 409: 3, 503: 3}),
    ):
        await mesh.enforce(*OPEN, by_client({**FAST, "retryOn": on, "numRetries": 2}))
        result = {status: (await tries(mesh, "client", f"/status/{status}"))[1] for status in statuses}
        assert result == statuses, on


async def test_attempt_above_its_timeout_is_retried_and_ends_in_504(mesh: PolicyMesh) -> None:
    """Each attempt has the timeout, and the last failure is a 504."""
    slow = {**FIVE, "numRetries": 2, "perTryTimeout": "50ms"}
    await mesh.enforce(*OPEN, by_client(slow))
    assert await tries(mesh, "client", "/never") == (504, 3)


async def test_denied_request_is_not_answered_with_a_retry(mesh: PolicyMesh) -> None:
    """A Retry gives no access to a caller that policy denies."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("office/clerk",), *ALL), by_client(FIVE))
    assert (await mesh.get("client", "v1")).status != 200
    assert (await tries(mesh, "clerk", "/"))[0] == 200


async def test_retry_of_a_split_applies_to_its_apex_only(mesh: PolicyMesh) -> None:
    """A Retry of the apex applies to every backend, and a backend's own Retry does not apply."""
    halves = split("s", "root", {"v2": 1})
    await mesh.enforce(*OPEN, halves, by_client(FIVE, "root"))
    assert await tries(mesh, "client", "/status/503", "root", "v2") == (503, 6)
    await mesh.enforce(*OPEN, halves, by_client(FIVE, "v2"))
    assert await tries(mesh, "client", "/status/503", "root", "v2") == (503, 1)


async def test_retry_applies_in_permissive_mode(mesh: PolicyMesh) -> None:
    """The client's requests are retried; the clerk has no Retry and one attempt."""
    await mesh.enforce(PERMISSIVE, by_client(FIVE))
    assert await tries(mesh, "client", "/status/503") == (503, 6)
    assert await tries(mesh, "clerk", "/status/503") == (503, 1)
