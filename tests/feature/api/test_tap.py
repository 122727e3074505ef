"""Tests of `tap`: a real server, sidecars that send access logs by gRPC, and watchers on the socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest

from certs.keys.pair import Pair
from meshwright.admin.api.tap import GONE_SECONDS
from meshwright.sidecars.envoy.tap.access_log_service import METHOD
from meshwright.traffic.taps import MOST_TAPS, PER_SECOND
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.service.accesslog.v3 import als_pb2
from tests.feature.identity.conftest import Server, serving
from tests.meshes import texts

DOCUMENTS = (
    texts.service("bank", texts.port(80, 18081)),
    texts.workload("one", "10.0.0.1", app="store", account="store", spec="service: store"),
    texts.workload("two", "10.0.0.2", app="bank", account="bank", spec="service: bank"),
)
EDGE = texts.workload("edge", "10.0.0.3", account="edge", spec="gateway: edge")
STORE, BANK = "one.store.shop", "two.bank.shop"
ASKED = "/api/v1/tap?service=shop/store"


class Watching:
    """A watcher of requests."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def line(self) -> dict[str, Any]:
        """Return the next line, or an empty object at the end of the stream."""
        async with asyncio.timeout(20):
            result: dict[str, Any] = json.loads(await self.response.content.readline() or b"{}")
            return result


@asynccontextmanager
async def watching(server: Server, path: str = ASKED) -> AsyncIterator[Watching]:
    """Start a tap on the socket, as `meshwright tap` does."""
    connector = aiohttp.UnixConnector(str(server.state / "meshwright.sock"))
    async with (
        aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session,
        session.get(f"http://localhost{path}") as response,
    ):
        yield Watching(response)


def message(*paths: str, status: int = 200) -> bytes:
    """Return an Envoy's access log message for requests to these paths."""
    logs_message = als_pb2.StreamAccessLogsMessage()
    for path in paths:
        entry = logs_message.http_logs.log_entry.add()
        entry.request.path = path
        entry.request.request_method = base_pb2.GET
        entry.response.response_code.value = status
    return logs_message.SerializeToString()


@asynccontextmanager
async def telling(server: Server, pair: Pair | None) -> AsyncIterator[Any]:
    """Open a stream of the access log service with or without a certificate."""
    credentials = grpc.ssl_channel_credentials(
        server.authority.trust_bundle(),
        pair.key.reveal() if pair else None,
        pair.chain_pem if pair else None,
    )
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    async with grpc.aio.secure_channel(str(server.bound.ads), credentials, options) as channel:
        yield channel.stream_stream("/" + "/".join(METHOD))()


async def ended(call: Any) -> grpc.StatusCode:
    """Return the status with which a stream ended."""
    async with asyncio.timeout(20):
        code: grpc.StatusCode = await call.code()
        return code


async def test_matching_requests_of_the_tapped_service_reach_the_watcher(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The watcher gets matching requests in order up to its limit, without query strings.

    Then the sidecar's stream ends at its next message. The stream of a sidecar of another service ends at its
    first message.
    """
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        server = await start(*DOCUMENTS)
        store = server.certificate(STORE)
        async with telling(server, store) as call, telling(server, server.certificate(BANK)) as stranger:
            async with watching(server, f"{ASKED}&path=/a&status=5xx&limit=2") as tap:
                assert (tap.response.status, tap.response.content_type) == (200, "application/x-ndjson")
                assert await tap.line() == {"watching": {"service": "shop/store", "proxies": 0}}
                await stranger.write(message("/a/strange", status=500))
                assert await ended(stranger) is grpc.StatusCode.OK
                await call.write(message("/a/well"))
                await call.write(message("/b", "/a/first?token=secret", status=500))
                await call.write(message("/a/second", "/a/third", status=503))
                messages = [(await tap.line())["request"] for _ in range(2)]
                assert [(item["path"], item["status"], item["proxy"]) for item in messages] == [
                    ("/a/first", 500, STORE),
                    ("/a/second", 503, STORE),
                ]
                assert await tap.line() == {"ended": "the limit of 2 requests is reached"}
                assert await tap.line() == {}
            await call.write(message("/a"))
            assert await ended(call) is grpc.StatusCode.OK


async def test_watcher_of_a_routed_service_gets_the_names_of_route_and_backends(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Calls that a route leads to another Service are answered by the sidecars of that Service."""
    match = "{path: {type: PathPrefix, value: /a}}"
    route = texts.gateway_route("web", "store", texts.rule(match, ("bank", 1), ("store", 1)))
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        server = await start(*DOCUMENTS, route)
        for service, more in (
            ("shop/store", {"routes": ["HTTPRoute shop/web"], "backends": ["shop/bank"]}),
            ("shop/bank", {}),
        ):
            async with watching(server, f"/api/v1/tap?service={service}") as tap:
                assert await tap.line() == {"watching": {"service": service, "proxies": 0} | more}


async def test_unauthorised_or_invalid_access_log_stream_is_refused(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A missing or unissued certificate, a malformed message and a too large message each end the stream."""
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        server = await start(*DOCUMENTS)
        async with watching(server) as tap:
            await tap.line()
            forged = server.certificate("three.store.shop", issued=False)
            async with telling(server, forged) as call:
                assert await ended(call) is grpc.StatusCode.PERMISSION_DENIED
            async with telling(server, None) as call:
                assert await ended(call) in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.PERMISSION_DENIED}
            async with telling(server, server.certificate(STORE)) as call:
                await call.write(b"\xff\xff")
                assert await ended(call) is grpc.StatusCode.INVALID_ARGUMENT
            async with telling(server, server.certificate(STORE)) as call:
                await call.write(b"\0" * 300_000)
                assert await ended(call) is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_requests_above_the_rate_limit_are_counted_as_lost(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The watcher gets some requests of a flood and the number of the others."""
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        server = await start(*DOCUMENTS)
        async with watching(server) as tap, telling(server, server.certificate(STORE)) as call:
            await tap.line()
            flood = 5 * PER_SECOND
            await call.write(message(*["/"] * flood))
            answer = lost = 0
            while answer + lost < flood:
                line = await tap.line()
                answer += "request" in line
                lost += line.get("lost", 0)
            assert answer + lost == flood
            assert lost >= 2 * PER_SECOND, "it is one message, of a second or, at its turn, of two"


async def test_tap_above_the_limit_is_refused_until_another_ends(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The tap above the limit gets status 503. An ended tap makes room, even if it had no requests."""
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        server = await start(*DOCUMENTS)
        async with AsyncExitStack() as ends:
            first, *others = [watching(server) for _ in range(MOST_TAPS)]
            there = [await ends.enter_async_context(context_manager) for context_manager in others]
            async with first as tap:
                assert {item.response.status for item in (tap, *there)} == {200}
                async with watching(server) as refused:
                    assert refused.response.status == 503
                    assert f"{MOST_TAPS} taps are running already" in (await refused.line())["error"]
            async with asyncio.timeout(GONE_SECONDS):
                while await _status(server) != 200:
                    await asyncio.sleep(0.05)


async def _status(server: Server) -> int:
    """Return the HTTP status that a new tap gets."""
    async with watching(server) as tap:
        return tap.response.status


async def test_tap_is_not_served_at_the_debug_address(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Only the socket serves `tap`, because it changes sidecars, and the debug address is read-only."""
    async with serving(tmp_path_factory.mktemp("mesh")) as start, aiohttp.ClientSession() as session:
        server = await start(*DOCUMENTS)
        async with session.get(f"http://{server.bound.debug}{ASKED}") as response:
            assert response.status == 404


WRONG = (
    ("", 400, "service is '': must be namespace/service"),
    ("service=store", 400, "service is 'store': must be namespace/service"),
    ("service=shop/nobody", 404, "service shop/nobody does not exist"),
    ("proxy=nobody", 404, "proxy 'nobody' does not exist"),
    (
        "proxy=edge",
        404,
        (
            "proxy edge.edge.shop serves Gateway shop/edge, and only sidecars of called services report "
            "requests: give a Service behind the gateway instead"
        ),
    ),
    ("service=shop/store&from=alice", 400, "from is 'alice': must be namespace/service-account"),
    ("service=shop/store&method=get", 400, "method is 'get': must be one of GET"),
    ("service=shop/store&path=books", 400, "path is 'books': must begin with /"),
    ("service=shop/store&path=/a?b", 400, "path is '/a?b': must begin with /, have at most 256 characters"),
    (
        "service=shop/store&status=6xx",
        400,
        "status is '6xx': must be a status such as 404, or a class such as 5xx",
    ),
    ("service=shop/store&seconds=0", 400, "seconds is '0': must be a whole number from 1 to 3600"),
    ("service=shop/store&limit=1e3", 400, "limit is '1e3': must be a whole number from 1 to 100000"),
    ("service=shop/store&service=shop/bank", 400, "service is given 2 times: at most once is allowed"),
    ("service=shop/store&colour=red", 400, "unknown parameter 'colour': must be one of service"),
    ("service=shop/store" + "&method=GET" * 17, 400, "method is given 17 times: at most 16 times is allowed"),
)
"""What cannot be asked, the status, and what is said of it."""


async def test_invalid_tap_parameter_is_refused_with_the_valid_values(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The error names the parameter, the given value and the valid values."""
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        server = await start(*DOCUMENTS, EDGE)
        for query, status, words in WRONG:
            async with watching(server, f"/api/v1/tap?{query.replace('/a?b', '/a%3Fb')}") as tap:
                answer = (await tap.line())["error"]
                assert (tap.response.status, words in answer) == (status, True), answer
