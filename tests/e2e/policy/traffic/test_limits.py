"""Tests of UpstreamTrafficSettings with real Envoys: traffic above a limit is refused and counted."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import grpc
import grpc.aio
import pytest

from tests.e2e.policy import calls
from tests.e2e.policy.applications import ECHO, GRPC, HTTP
from tests.e2e.policy.policies import ALL, EVERYTHING, Document, target, upstream_traffic
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.tools.deadline import until

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

OPEN = (
    *EVERYTHING,
    target("one", "shop/v1", ("shop/client",), *ALL),
    target("two", "shop/v2", ("shop/client",), *ALL),
)
TO_V1 = f"cluster.shop/v1.{HTTP}"
"""Beginning of an expression for counters' names: the bar in them would be one of it."""


def at_once(**limits: object) -> Document:
    """Return limits of concurrent traffic to v1."""
    return upstream_traffic("v1", connectionSettings=limits)


async def statuses(mesh: PolicyMesh, count: int, path: str = "/", service: str = "v1") -> Counter[int]:
    """Return the statuses of `count` requests of the client, one after the other."""
    return Counter([(await mesh.get("client", service, path)).status for _ in range(count)])


@asynccontextmanager
async def under_way(mesh: PolicyMesh, service: str = "v1") -> AsyncIterator[None]:
    """Keep a request of the client open, a WebSocket, until the block ends."""
    async with aiohttp.ClientSession() as session, session.ws_connect(mesh.url("client", service) + "/ws"):
        yield


async def test_concurrent_requests_above_the_limit_get_503(mesh: PolicyMesh) -> None:
    """While one request is open, others get 503 at once and are counted.

    Once it has ended, requests succeed.
    """
    await mesh.enforce(*OPEN, at_once(http={"maxRequests": 1}))
    over = f"{TO_V1}.upstream_rq_active_overflow"
    before = await mesh.live.stat("client", over)
    async with under_way(mesh):
        assert await statuses(mesh, 3) == {503: 3}
        assert await mesh.live.stat("client", over) - before == 3
        assert await statuses(mesh, 3, service="v2") == {200: 3}
        assert await mesh.live.stat("client", f"{TO_V1}.circuit_breakers.default.rq_open") == 1
        assert await mesh.live.stat("client", f"{TO_V1}.circuit_breakers.default.remaining_rq") == 0

    async def taken() -> bool:
        return (await mesh.get("client", "v1")).status == 200

    await until(taken)
    assert await statuses(mesh, 5) == {200: 5}


async def test_requests_of_five_callers_are_answered_or_counted_as_overflow(mesh: PolicyMesh) -> None:
    """Of fifty requests, each that gets 503 is in an overflow counter."""
    await mesh.enforce(
        *OPEN, at_once(tcp={"maxConnections": 1}, http={"maxRequests": 1, "maxPendingRequests": 1})
    )
    counters = [f"{TO_V1}.upstream_rq_{item}_overflow" for item in ("pending", "active")]
    before = sum([await mesh.live.stat("client", counter) for counter in counters])
    result = Counter[int]()

    async def calling() -> None:
        result.update(await statuses(mesh, 10))

    await asyncio.gather(*(calling() for _ in range(5)))
    assert set(result) == {200, 503}
    assert result.total() == 50
    assert sum([await mesh.live.stat("client", counter) for counter in counters]) - before == result[503]


async def test_pending_requests_above_the_limit_get_503(mesh: PolicyMesh) -> None:
    """With a limit of zero pending requests, even the first request gets 503.

    With one, a waiting request is answered later and further ones get 503.
    """
    await mesh.enforce(*OPEN, at_once(tcp={"maxConnections": 1}, http={"maxPendingRequests": 0}))
    # A request passes over a connection that is there, and waits for one that is not: see docs/policy/osm.md.
    assert await statuses(mesh, 1) == {503: 1}
    for connections in (0, 1):
        limits = at_once(tcp={"maxConnections": connections}, http={"maxPendingRequests": 1})
        await mesh.enforce(*OPEN, limits)
        assert await statuses(mesh, 5) == {200: 5}
    async with under_way(mesh):
        waiting = asyncio.create_task(mesh.get("client", "v1"), name="waiting")

        async def waits() -> bool:
            return await mesh.live.stat("client", f"{TO_V1}.upstream_rq_pending_active") == 1

        await until(waits)
        before = await mesh.live.stat("client", f"{TO_V1}.upstream_rq_pending_overflow")
        assert await statuses(mesh, 3) == {503: 3}
        assert await mesh.live.stat("client", f"{TO_V1}.upstream_rq_pending_overflow") - before == 3
    assert (await waiting).status == 200


async def test_concurrent_tcp_connections_above_the_limit_are_closed(mesh: PolicyMesh) -> None:
    """A second connection is closed while the first one is open, and is counted."""
    await mesh.enforce(*OPEN, at_once(tcp={"maxConnections": 1}))
    async with AsyncExitStack() as open_connections:
        reader, writer = await asyncio.open_connection(*mesh.place("client", "v1", ECHO))
        open_connections.callback(writer.transport.abort)
        writer.write(b"hello\n")
        assert await reader.readline() == b"v1: hello\n"
        assert await mesh.hello("client", "v1", ECHO) == calls.CLOSED
        assert await mesh.hello("client", "v2", ECHO) == "v2: hello\n"

    async def taken() -> bool:
        return await mesh.hello("client", "v1", ECHO) == "v1: hello\n"

    await until(taken)
    assert await mesh.live.stat("client", f"cluster.shop/v1.{ECHO}.upstream_cx_overflow") >= 1


async def test_connection_is_replaced_after_its_maximum_of_requests(mesh: PolicyMesh) -> None:
    """With a maximum of two, six requests use three connections."""
    await mesh.enforce(*OPEN, at_once(http={"maxRequestsPerConnection": 2}))
    before = await mesh.live.stat("client", f"{TO_V1}.upstream_cx_total")
    assert await statuses(mesh, 6) == {200: 6}
    assert await mesh.live.stat("client", f"{TO_V1}.upstream_cx_total") - before == 3


def rate(**limits: object) -> Document:
    """Return a local rate limit of v1."""
    return upstream_traffic("v1", rateLimit={"local": limits})


async def test_http_rate_limit_admits_requests_and_burst_then_429(mesh: PolicyMesh) -> None:
    """The limit is exact and common to all callers. Requests that policy denies use up nothing."""
    hour = {"requests": 3, "unit": "hour"}
    await mesh.enforce(*OPEN, rate(http=hour))
    await mesh.enforce(*OPEN, target("clerk", "shop/v1", ("office/clerk",), *ALL), rate(http=hour))
    assert [(await mesh.get("client", "v1")).status for _ in range(5)] == [200, 200, 200, 429, 429]
    assert await statuses(mesh, 3, service="v2") == {200: 3}
    assert (await mesh.get("clerk", "v1")).status == 429, "all callers together"
    await mesh.enforce(*OPEN, rate(http={**hour, "burst": 4}))
    assert await statuses(mesh, 10) == {200: 7, 429: 3}
    await mesh.enforce(*OPEN)
    assert await statuses(mesh, 5) == {200: 5}


async def test_http_rate_limit_is_refilled_after_its_unit(mesh: PolicyMesh) -> None:
    """After a refusal, a request is admitted again."""
    await mesh.enforce(*OPEN, rate(http={"requests": 2, "unit": "second"}))

    async def refused() -> bool:
        return (await mesh.get("client", "v1")).status == 429

    async def taken() -> bool:
        return (await mesh.get("client", "v1")).status == 200

    await until(refused)
    await until(taken)


async def test_rate_limit_response_has_the_configured_status_and_headers(mesh: PolicyMesh) -> None:
    """A percent sign in a header value is kept."""
    response = [
        {"name": "X-Limited", "value": "at 100%"},
        {"name": "content-type", "value": "text/x-limited"},
    ]
    limit = {"requests": 1, "unit": "hour", "responseStatusCode": 503, "responseHeadersToAdd": response}
    await mesh.enforce(*OPEN, rate(http=limit))
    assert await statuses(mesh, 1) == {200: 1}
    async with aiohttp.ClientSession() as session, session.get(mesh.url("client", "v1")) as answer:
        headers = (answer.headers.getall("x-limited"), answer.headers.getall("content-type"))
        assert (answer.status, *headers) == (503, ["at 100%"], ["text/x-limited"])


async def test_route_rate_limit_counts_separately_for_all_methods(mesh: PolicyMesh) -> None:
    """A route's limit counts its requests apart from the service's limit.

    No access rule with the same path is needed.
    """
    hour = {"requests": 2, "unit": "hour"}
    routes = [
        {"path": "/reports/.*", "rateLimit": {"local": hour}},
        {"path": "/.*/big", "rateLimit": {"local": {**hour, "requests": 1}}},
    ]
    every = {"local": {"http": {**hour, "requests": 4}}}
    await mesh.enforce(*OPEN, upstream_traffic("v1", rateLimit=every, httpRoutes=routes))
    assert [(await mesh.get("client", "v1", "/reports/big?x=1")).status for _ in range(3)] == [200, 200, 429]
    assert (await mesh.get("client", "v1", "/reports/1", method="POST")).status == 429
    assert await statuses(mesh, 2, "/other/big") == {200: 1, 429: 1}
    assert await statuses(mesh, 6) == {200: 4, 429: 2}


async def test_grpc_rate_limit_is_resource_exhausted(mesh: PolicyMesh) -> None:
    """A client can distinguish this status from an unavailable server."""
    await mesh.enforce(*OPEN, rate(http={"requests": 1, "unit": "hour"}))
    address, port = mesh.place("client", "v1", GRPC)
    async with grpc.aio.insecure_channel(f"{address}:{port}") as channel:
        say = channel.unary_unary("/test.Echo/Say")
        assert await say(b"hello") == b"v1: hello"
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await say(b"hello")
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_tcp_rate_limit_closes_connections_of_all_callers(mesh: PolicyMesh) -> None:
    """The limit is common to all callers although each has its own filter chain.

    Each port counts by itself.
    """
    clerk = target("clerk", "shop/v1", ("office/clerk",), *ALL)
    await mesh.enforce(*OPEN, clerk, rate(tcp={"connections": 2, "unit": "hour", "burst": 1}))
    lines = [await mesh.hello(item, "v1", ECHO) for item in ("client", "clerk", "client", "clerk", "client")]
    assert lines == [*["v1: hello\n"] * 3, calls.CLOSED, calls.CLOSED]
    assert await mesh.live.stat("v1", f"local_rate_limit.inbound.{ECHO}.rate_limited") >= 2
    assert await statuses(mesh, 5) == {200: 5}, (
        "each port by itself, and the requests of a connection are one"
    )
