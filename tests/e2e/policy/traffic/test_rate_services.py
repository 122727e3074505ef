"""Tests of global rate limits, counted by a gRPC service, with real Envoys."""

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
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.servers import RateLimiter

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("no_connections"),
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
    """One rate limit service for all tests of the file."""
    async with AsyncExitStack() as ends:
        yield await RateLimiter.start(ends)


def key(*pairs: tuple[str, str]) -> Document:
    """Return a descriptor of constant keys."""
    return {"entries": [{"genericKey": {"key": key, "value": value}} for key, value in pairs]}


def asking(port: int, *descriptors: Document, **more: object) -> Document:
    """Return a limit with its service and descriptors."""
    return {
        "rateLimitService": {"host": "127.0.0.1", "port": port},
        "domain": "shop",
        "timeout": PATIENT,
        "descriptors": list(descriptors),
        **more,
    }


def counted(service: str, http: Document, **more: object) -> Document:
    """Return a setting of a service with a global HTTP limit."""
    return upstream_traffic(service, rateLimit={"global": {"http": http}}, **more)


async def statuses(mesh: PolicyMesh, caller: str, count: int, to: str = "v1", path: str = "/") -> list[int]:
    """Return the statuses of `count` requests, one after the other."""
    return [(await mesh.get(caller, to, path)).status for _ in range(count)]


async def enforced(mesh: PolicyMesh, *policy: Document) -> None:
    """Enforce a policy and end all earlier connections.

    The rate limit service is part of the listener: a connection keeps its filters, and ends with its next
    request.
    """
    await mesh.enforce(*policy)
    for caller, to in (("client", "v1"), ("clerk", "v1"), ("client", "v2")) * 3:
        await mesh.get(caller, to)  # the first announces the connection's end; the next may be in flight


async def test_global_rate_limit_counts_all_workloads_together(
    mesh: PolicyMesh, limiter: RateLimiter
) -> None:
    """Two services admit three requests in total, for all callers.

    Requests that policy refuses are not counted.
    """
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


async def test_rate_limit_service_gets_the_descriptors_that_match_a_request(
    mesh: PolicyMesh, limiter: RateLimiter
) -> None:
    """For a request without a matching descriptor, the service is not called."""
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


async def test_route_descriptors_replace_those_of_the_service(mesh: PolicyMesh, limiter: RateLimiter) -> None:
    """A route with only a local limit still has the service's descriptors.

    Requests above the local limit are not sent to the rate limit service.
    """
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


async def test_global_rate_limit_response_has_the_configured_status_and_headers(
    mesh: PolicyMesh, limiter: RateLimiter
) -> None:
    """The status is the configured one, and gRPC gets RESOURCE_EXHAUSTED.

    The headers with the limit are optional.
    """
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
async def test_unavailable_rate_limit_service_admits_all_or_no_requests(
    mesh: PolicyMesh, fails_open: bool, status: int
) -> None:
    """With `failOpen` all requests are admitted; without it, all get status 500."""
    async with AsyncExitStack() as ends:
        gone = await RateLimiter.start(ends)
    await enforced(mesh, *OPEN, counted("v1", asking(gone.port, key(*WEB), failOpen=fails_open)))
    assert await statuses(mesh, "client", 3) == [status] * 3


async def test_rate_limit_service_that_hangs_is_waited_for_up_to_its_timeout(
    mesh: PolicyMesh, limiter: RateLimiter
) -> None:
    """After the timeout, the request is admitted."""
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
async def test_global_tcp_rate_limit_counts_connections_of_all_callers(
    mesh: PolicyMesh, limiter: RateLimiter, fails_open: bool
) -> None:
    """Other services are not limited, and requests on a connection are not counted."""
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
async def test_unavailable_rate_limit_service_admits_all_or_no_connections(
    mesh: PolicyMesh, fails_open: bool, answer: str
) -> None:
    """With `failOpen` all connections are served; without it, all are closed."""
    async with AsyncExitStack() as ends:
        gone = await RateLimiter.start(ends)
    fields = {"entries": [{"key": "service", "value": "web"}]}
    tcp = {"global": {"tcp": asking(gone.port, fields, failOpen=fails_open)}}
    await mesh.enforce(*OPEN, upstream_traffic("v1", rateLimit=tcp))
    assert [await mesh.hello("client", "v1", ECHO) for _ in range(2)] == [answer, answer]
