"""Rates that a service counts for all workloads together: real Envoys, and a service over gRPC."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import grpc
import grpc.aio
import pytest
import pytest_asyncio

from tests.e2e.policy import calls
from tests.e2e.policy.applications import ECHO, GRPC, HTTP
from tests.e2e.policy.policies import (
    ALL,
    EVERYTHING,
    Document,
    http,
    path,
    routes,
    target,
    upstream_traffic,
)
from tests.e2e.policy.running import PolicyMesh
from tests.e2e.policy.servers import RateLimiter

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("leaves_nobody_to_ask"),
]

OPEN = (
    *EVERYTHING,
    target("one", "shop/v1", ("shop/client", "office/clerk"), *ALL),
    target("two", "shop/v2", ("shop/client",), *ALL),
)
WEB = (("service", "web"),)
PATIENT = "5s"
"""Longer than 20 ms, for a machine that has other things to do."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def limiter() -> AsyncIterator[RateLimiter]:
    """One for the file."""
    async with AsyncExitStack() as ends:
        yield await RateLimiter.start(ends)


def key(*pairs: tuple[str, str]) -> Document:
    """Make a descriptor of keys that are the same for all requests."""
    return {"entries": [{"genericKey": {"key": key, "value": value}} for key, value in pairs]}


def asking(port: int, *descriptors: Document, **more: object) -> Document:
    """Say who is asked, and what it is told."""
    return {
        "rateLimitService": {"host": "127.0.0.1", "port": port},
        "domain": "shop",
        "timeout": PATIENT,
        "descriptors": list(descriptors),
        **more,
    }


def counted(service: str, http: Document, **more: object) -> Document:
    """Make a setting of a service whose requests are counted."""
    return upstream_traffic(service, rateLimit={"global": {"http": http}}, **more)


async def statuses(mesh: PolicyMesh, caller: str, count: int, to: str = "v1", path: str = "/") -> list[int]:
    """Return what is answered to so many requests, one after the other."""
    return [(await mesh.get(caller, to, path)).status for _ in range(count)]


async def enforced(mesh: PolicyMesh, *policy: Document) -> None:
    """Put a policy in force, and have all connections that began before it end.

    Who is asked stands in the listener: a connection keeps its filters, and ends with its next request.
    """
    await mesh.enforce(*policy)
    for caller, to in (("client", "v1"), ("clerk", "v1"), ("client", "v2")) * 3:
        await mesh.get(caller, to)  # the first says that its connection ends; the next may be on its way


async def test_all_workloads_are_counted_together(mesh: PolicyMesh, limiter: RateLimiter) -> None:
    """Two services take three in all, whoever calls; what policy refuses is not asked about."""
    asked = asking(limiter.port, key(*WEB))
    rules = (
        routes("g", path("/a.*")),
        target("one", "shop/v1", ("shop/client", "office/clerk"), http("g")),
        target("two", "shop/v2", ("shop/client",), http("g")),
    )
    await enforced(mesh, *rules, counted("v1", asked), counted("v2", asked))
    limiter.begin({WEB: 3})
    assert await statuses(mesh, "client", 3, path="/b") == [403, 403, 403]
    assert limiter.asked == []
    assert await statuses(mesh, "client", 1, path="/a") == [200]
    assert await statuses(mesh, "client", 1, "v2", "/a") == [200]
    assert await statuses(mesh, "clerk", 2, path="/a") == [200, 429]
    assert await statuses(mesh, "client", 2, "v2", "/a") == [429, 429]
    assert limiter.asked == [("shop", (WEB,))] * 6
    await enforced(mesh, *OPEN)
    limiter.begin({})
    assert await statuses(mesh, "client", 3) == [200, 200, 200]
    assert limiter.asked == []


async def test_what_the_service_is_told(mesh: PolicyMesh, limiter: RateLimiter) -> None:
    """Of each request the descriptors that fit it; of one that fits none, nobody is asked."""
    tenant = {"entries": [{"requestHeader": {"name": "X-Tenant", "key": "tenant"}}, {"remoteAddress": {}}]}
    headers = [{"name": ":method", "exact": "POST"}, {"name": "x-form", "regex": "[0-9]+"}]
    writing = {"entries": [{"headerValueMatch": {"value": "writing", "headers": headers}}]}
    others = {
        "entries": [
            {
                "headerValueMatch": {
                    "key": "not",
                    "value": "curl",
                    "expectMatch": False,
                    "headers": [{"name": "user-agent", "prefix": "test"}],
                }
            }
        ]
    }
    await enforced(mesh, *OPEN, counted("v1", asking(limiter.port, tenant, writing, others)))
    limiter.begin({})
    own = {"user-agent": "testing"}
    await mesh.get("client", "v1", headers=own)
    await mesh.get("client", "v1", headers={**own, "x-tenant": "blue"})
    await mesh.get("client", "v1", method="POST", headers={**own, "x-form": "17"})
    await mesh.get("client", "v1", method="POST", headers={**own, "x-form": "17a"})
    await mesh.get("client", "v1", headers={"user-agent": "other"})
    ((domain, ((tenant_entry, address),)), *rest) = limiter.asked
    assert (domain, tenant_entry, address[0]) == ("shop", ("tenant", "blue"), "remote_address")
    assert address[1].startswith("127.")
    assert rest == [("shop", ((("header_match", "writing"),),)), ("shop", ((("not", "curl"),),))]


async def test_a_route_is_told_by_its_own(mesh: PolicyMesh, limiter: RateLimiter) -> None:
    """In place of what is told of all; a route with limits of the workload's own is told by what all are."""
    reports = (("route", "reports"),)
    hour = {"requests": 1, "unit": "hour"}
    more = [
        {"path": "/reports/.*", "rateLimit": {"global": {"descriptors": [key(*reports)]}}},
        {"path": "/local", "rateLimit": {"local": hour}},
    ]
    await enforced(mesh, *OPEN, counted("v1", asking(limiter.port, key(*WEB)), httpRoutes=more))
    limiter.begin({reports: 1, WEB: 2})
    assert await statuses(mesh, "client", 2, path="/reports/1") == [200, 429]
    # What is over the workload's own limit the service is spared.
    assert await statuses(mesh, "client", 2, path="/local") == [200, 429]
    assert await statuses(mesh, "client", 2) == [200, 429]
    assert Counter(item for _, item in limiter.asked) == {(reports,): 2, (WEB,): 3}


async def test_what_is_answered_instead(mesh: PolicyMesh, limiter: RateLimiter) -> None:
    """The status that is said, gRPC in its own words, and what is left in headers where that is wanted."""
    asked = asking(limiter.port, key(*WEB), responseStatusCode=503, enableXRateLimitHeaders=True)
    await enforced(mesh, *OPEN, counted("v1", asked))
    limiter.begin({WEB: 1})
    seen = []
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.get(mesh.url("client", "v1")) as answer:
                seen.append((answer.status, answer.headers["x-ratelimit-limit"].partition(",")[0]))
    assert seen == [(200, "1"), (503, "1")]
    address, port = mesh.place("client", "v1", GRPC)
    async with grpc.aio.insecure_channel(f"{address}:{port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary("/test.Echo/Say")(b"hello")
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(("fails_open", "status"), [(True, 200), (False, 500)])
async def test_a_service_that_is_gone(mesh: PolicyMesh, fails_open: bool, status: int) -> None:
    """All pass, or none, as it is said."""
    async with AsyncExitStack() as ends:
        gone = await RateLimiter.start(ends)
    await enforced(mesh, *OPEN, counted("v1", asking(gone.port, key(*WEB), failOpen=fails_open)))
    assert await statuses(mesh, "client", 3) == [status] * 3


async def test_a_service_that_does_not_answer(mesh: PolicyMesh, limiter: RateLimiter) -> None:
    """It is waited for as long as is said, and not longer."""
    await enforced(mesh, *OPEN, counted("v1", asking(limiter.port, key(*WEB), timeout="500ms")))
    limiter.begin({WEB: 0})
    limiter.answering.clear()
    try:
        async with asyncio.timeout(10):
            assert await statuses(mesh, "client", 2) == [200, 200]
        assert len(limiter.asked) == 2
    finally:
        limiter.answering.set()


@pytest.mark.parametrize("fails_open", [True, False])
async def test_connections(mesh: PolicyMesh, limiter: RateLimiter, fails_open: bool) -> None:
    """Of a port, whoever calls; the requests of a connection are one. Other services are not concerned."""
    fields = {"entries": [{"key": "service", "value": "web"}]}
    tcp = {"global": {"tcp": asking(limiter.port, fields, failOpen=fails_open)}}
    await mesh.enforce(*OPEN, upstream_traffic("v1", rateLimit=tcp))
    limiter.begin({WEB: 2})
    lines = [await mesh.hello(item, "v1", ECHO) for item in ("client", "clerk", "client", "clerk")]
    assert lines == ["v1: hello\n", "v1: hello\n", calls.CLOSED, calls.CLOSED]
    assert await mesh.hello("client", "v2", ECHO) == "v2: hello\n"
    assert limiter.asked == [("shop", (WEB,))] * 4
    limiter.begin({})
    assert await statuses(mesh, "client", 5) == [200] * 5
    assert 1 <= len(limiter.asked) <= 2, f"each connection at port {HTTP}, and no request"


@pytest.mark.parametrize(("fails_open", "answer"), [(True, "v1: hello\n"), (False, calls.CLOSED)])
async def test_connections_while_the_service_is_gone(mesh: PolicyMesh, fails_open: bool, answer: str) -> None:
    """All pass, or none, as it is said."""
    async with AsyncExitStack() as ends:
        gone = await RateLimiter.start(ends)
    fields = {"entries": [{"key": "service", "value": "web"}]}
    tcp = {"global": {"tcp": asking(gone.port, fields, failOpen=fails_open)}}
    await mesh.enforce(*OPEN, upstream_traffic("v1", rateLimit=tcp))
    assert [await mesh.hello("client", "v1", ECHO) for _ in range(2)] == [answer, answer]
