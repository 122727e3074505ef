"""RoutePolicies at real Envoys: what callers see, and what comes to the callee."""

import asyncio

import pytest

from tests.e2e.policy.policies import (
    ALL,
    EVERYTHING,
    PERMISSIVE,
    http,
    path,
    route_policy,
    routes,
    split,
    target,
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
SOON = {"timeout": {"request": "100ms"}}


async def waits(mesh: PolicyMesh, caller: str, path: str, service: str = "v1", method: str = "GET") -> bool:
    """Say whether a request is still under way after half a second."""
    try:
        async with asyncio.timeout(0.5):
            assert (await mesh.get(caller, service, path, method=method)).status == 504
    except TimeoutError:
        return True
    return False


async def test_a_request_that_takes_too_long_is_answered_504(mesh: PolicyMesh) -> None:
    """Whoever calls, in both modes; those of other services and without a policy wait."""
    for base in (OPEN, (PERMISSIVE,)):
        await mesh.enforce(*base, route_policy("p", "v1", SOON))
        assert (await mesh.get("client", "v1", "/never")).status == 504
        assert (await mesh.get("clerk", "v1", "/never")).status == 504
        assert (await mesh.get("client", "v1", "/")).status == 200
        assert await waits(mesh, "client", "/never", "v2")
        await mesh.enforce(*base)
        assert await waits(mesh, "client", "/never")


@pytest.mark.parametrize("service", ["v1", "root"])
async def test_rules_are_for_the_requests_they_name(mesh: PolicyMesh, service: str) -> None:
    """The first that fits decides; the apex of a split is asked, whose matches have a path of their own."""
    some = routes("some", path("/n.*"), path("/never", "GET"))
    patient = {"matches": [http("some", "m1")], "timeout": {"request": "1h"}}
    halves = (split("s", "root", {"v2": 1}, "some"),) if service == "root" else ()
    await mesh.enforce(*OPEN, some, *halves, route_policy("p", service, patient, SOON))
    assert await waits(mesh, "client", "/never", service)
    assert await waits(mesh, "client", "/never?to=x", service)
    assert not await waits(mesh, "client", "/never", service, method="POST")
