"""Tests of RoutePolicies with real Envoys, from the caller's and the callee's view."""

import asyncio

import aiohttp
import pytest

from tests.e2e.policy.applications import HTTP, SERVED_BY
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
SOON = {"timeout": {"request": "100ms"}}


async def waits(mesh: PolicyMesh, caller: str, path: str, service: str = "v1", method: str = "GET") -> bool:
    """Return whether a request is still in progress after half a second."""
    try:
        async with asyncio.timeout(0.5):
            assert (await mesh.get(caller, service, path, method=method)).status == 504
    except TimeoutError:
        return True
    return False


async def test_request_timeout_is_answered_with_504(mesh: PolicyMesh) -> None:
    """The timeout applies to all callers in both modes.

    Other services, and services without a policy, have no timeout.
    """
    for base in (OPEN, (PERMISSIVE,)):
        await mesh.enforce(*base, route_policy("p", "v1", SOON))
        assert (await mesh.get("client", "v1", "/never")).status == 504
        assert (await mesh.get("clerk", "v1", "/never")).status == 504
        assert (await mesh.get("client", "v1", "/")).status == 200
        assert await waits(mesh, "client", "/never", "v2")
        await mesh.enforce(*base)
        assert await waits(mesh, "client", "/never")


@pytest.mark.parametrize("service", ["v1", "root"])
async def test_first_rule_that_matches_a_request_applies(mesh: PolicyMesh, service: str) -> None:
    """The rules of a split's apex apply, also beside matches of the split with the same path."""
    some = routes("some", path("/n.*"), path("/never", "GET"))
    patient = {"matches": [http("some", "m1")], "timeout": {"request": "1h"}}
    halves = (split("s", "root", {"v2": 1}, "some"),) if service == "root" else ()
    await mesh.enforce(*OPEN, some, *halves, route_policy("p", service, patient, SOON))
    assert await waits(mesh, "client", "/never", service)
    assert await waits(mesh, "client", "/never?to=x", service)
    assert not await waits(mesh, "client", "/never", service, method="POST")


async def test_request_and_response_headers_are_set_added_and_removed(mesh: PolicyMesh) -> None:
    """The callee gets the changed request headers, and the caller the changed response headers."""
    changes = {
        "set": [{"name": "X-Set", "value": "50% %REQ(:path)%"}],
        "add": [{"name": "x-add", "value": "two"}],
        "remove": ["x-gone"],
    }
    back = {"set": [{"name": "x-back", "value": "here"}], "remove": [SERVED_BY]}
    rule = {"headers": {"request": changes, "response": back}}
    sent = {"x-set": "mine", "x-add": "one", "x-gone": "yes"}
    await mesh.enforce(*OPEN, route_policy("p", "v1", rule))
    url = mesh.url("client", "v1") + "/told"
    async with aiohttp.ClientSession() as session, session.get(url, headers=sent) as answer:
        messages = (await answer.text()).splitlines()
    assert answer.headers["x-back"] == "here"
    assert SERVED_BY not in answer.headers
    assert sorted(item for item in messages if item.partition(":")[0] in sent) == [
        "x-add: one",
        "x-add: two",
        "x-set: 50% %REQ(:path)%",
    ]


async def test_callee_rules_see_headers_as_changed_by_the_route_policy(mesh: PolicyMesh) -> None:
    """A header that a RoutePolicy sets or removes decides like one that the caller sends."""
    asked = routes("asked", {"pathRegex": ".*", "headers": [{"x-key": "opens"}]})
    one = target("one", "shop/v1", ("shop/client",), http("asked"))
    opens = {"headers": {"request": {"set": [{"name": "x-key", "value": "opens"}]}}}
    taken = {"headers": {"request": {"remove": ["x-key"]}}}
    key = {"x-key": "opens"}
    for rule, headers, status in (
        (None, None, 403),
        (None, key, 200),
        (opens, None, 200),
        (taken, key, 403),
    ):
        policy = (route_policy("p", "v1", rule),) if rule else ()
        await mesh.enforce(asked, one, *policy)
        assert (await mesh.get("client", "v1", headers=headers)).status == status


async def test_faults_affect_the_configured_share_of_requests(mesh: PolicyMesh) -> None:
    """All, some or no requests are aborted and do not reach the callee.

    Only matching requests are delayed.
    """
    counter = f"cluster.shop/v1.{HTTP}.local.upstream_rq_total"
    for percent, least, most in ((100, 40, 40), (0, 0, 0), (50, 4, 36)):
        fault = {"abort": {"percent": percent, "status": 418}}
        await mesh.enforce(*OPEN, routes("slow", path("/slow")), route_policy("p", "v1", {"fault": fault}))
        before = await mesh.live.stat("v1", counter)
        result = [(await mesh.get("client", "v1")).status for _ in range(40)]
        assert least <= result.count(418) <= most
        assert set(result) <= {200, 418}
        assert await mesh.live.stat("v1", counter) - before == result.count(200)
    held = {"matches": [http("slow")], "fault": {"delay": {"percent": 100, "duration": "1h"}}}
    await mesh.enforce(*OPEN, routes("slow", path("/slow")), route_policy("p", "v1", held))
    assert await waits(mesh, "client", "/slow")
    assert (await mesh.get("client", "v1", "/quick")).status == 200
    assert (await mesh.get("clerk", "v2", "/slow")).status == 200
    await mesh.enforce(*OPEN)
    assert (await mesh.get("client", "v1", "/slow")).status == 200


async def test_mirrored_requests_reach_the_mirror_and_their_responses_are_dropped(mesh: PolicyMesh) -> None:
    """All or no requests are copied, with the original host.

    A mirror that the caller may not call gets no copies.
    """
    counter = f"cluster.shop/v2.{HTTP}.local.upstream_rq_total"
    copies = route_policy("p", "v1", {"mirror": {"service": "v2", "percent": 100}})
    none = route_policy("p", "v1", {"mirror": {"service": "v2", "percent": 0}})
    hosts = routes("all", {"pathRegex": ".*", "headers": [{"host": "127[.].*"}]})
    by_host = target("two", "shop/v2", ("shop/client", "office/clerk"), http("all"))
    for policy, expected in (
        ((*OPEN, copies), 10),
        ((*EVERYTHING, hosts, OPEN[-2], by_host, copies), 10),
        ((*OPEN, none), 0),
        ((*OPEN[:-1], copies), 0),
        ((PERMISSIVE, copies), 10),
    ):
        await mesh.enforce(*policy)
        before = await mesh.live.stat("v2", counter)
        answers = [await mesh.get("client", "v1") for _ in range(10)]
        assert {(answer.status, answer.by) for answer in answers} == {(200, "v1")}

        async def came(before: int = before) -> int:
            return await mesh.live.stat("v2", counter) - before

        async with asyncio.timeout(10):
            while await came() < expected:
                await asyncio.sleep(0.05)
        assert await came() == expected
