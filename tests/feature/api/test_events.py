"""Tests of the stream of change events of a running server, over a real connection."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from meshwright.admin.api.events import CHANGED, CLIENTS
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.feature.identity.conftest import Server, serving
from tests.feature.rejection.conftest import joining
from tests.meshes import texts
from xds.stream_status import Variant

ONE = "one.buyer.shop"
DOCUMENTS = (
    texts.service("buyer", texts.port(80, 18080)),
    texts.workload("one", "10.0.0.1", app="buyer", account="buyer", spec="service: buyer"),
)


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """A client without a total timeout."""
    timeout = aiohttp.ClientTimeout(total=None, sock_read=30)
    async with aiohttp.ClientSession(timeout=timeout) as opened:
        yield opened


def _address(server: Server) -> str:
    return f"http://{server.bound.debug}/api/v1/events"


async def _until(response: aiohttp.ClientResponse, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the next event that contains the wanted values. Every event must match the document."""
    async with asyncio.timeout(20):
        async for line in response.content:
            if line.startswith(b"data: "):
                event: dict[str, Any] = json.loads(line[6:])
                Draft202012Validator(CHANGED).validate(event)
                if all(set(each) <= set(event[name]) for name, each in wanted.items()):
                    return event
    raise AssertionError("the stream has ended")


async def test_events_report_connected_proxies_and_changed_problems(
    tmp_path_factory: pytest.TempPathFactory, session: aiohttp.ClientSession
) -> None:
    """Events name proxies that connect or disconnect and the changed parts, but contain no object."""
    async with (
        serving(tmp_path_factory.mktemp("mesh")) as start,
        joining() as join,
        session.get(_address(server := await start(*DOCUMENTS))) as response,
    ):
        assert (response.status, response.content_type) == (200, "text/event-stream")
        assert await response.content.readline() == b"retry: 2000\n"
        sidecar = join(server, ONE, Variant.DELTA)
        came = await _until(response, {"came": [ONE], "parts": ["proxies"]})
        assert (came["went"], came["more"]) == ([], 0)
        server.write(*DOCUMENTS, texts.service("bad", "{port: none}"))
        problem = await _until(response, {"parts": ["problems"]})
        assert problem["came"] == problem["went"] == []
        assert set(problem) == {"at", "parts", "came", "went", "more"}
        sidecar.end()
        gone = await _until(response, {"went": [ONE]})
        assert "proxies" in gone["parts"]


@pytest.mark.parametrize(
    "rejection", [{}, {"error_detail": {"code": 13, "message": "no"}}], ids=["ACK", "NACK"]
)
async def test_event_follows_an_ack_or_nack_only(
    tmp_path_factory: pytest.TempPathFactory, session: aiohttp.ClientSession, rejection: dict[str, Any]
) -> None:
    """An answer of a proxy is an event.

    Another change that is sent to no proxy does not look like an answer.
    """
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        server: Server = await start(*DOCUMENTS)
        async with (
            session.get(_address(server)) as response,
            server.client(server.certificate(ONE)) as client,
        ):
            await client.ask(ONE)
            before = [await _until(response, {"came": [ONE]})]
            sent = await client.call.read()
            server.write(*DOCUMENTS, texts.service("bad", "{port: none}"))
            before.append(await _until(response, {"parts": ["problems"]}))
            assert [each["parts"] for each in before if "answers" in each["parts"]] == []
            said = {"type_url": sent.type_url, "response_nonce": sent.nonce, **rejection}
            await client.call.write(discovery_pb2.DeltaDiscoveryRequest(**said))
            answered = await _until(response, {"parts": ["answers"]})
            assert answered["came"] == answered["went"] == []


async def test_client_above_the_limit_is_refused_until_another_leaves(
    tmp_path_factory: pytest.TempPathFactory, session: aiohttp.ClientSession
) -> None:
    """The client above the limit gets status 503. A closed connection makes room."""
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        server = await start(*DOCUMENTS)
        listening = [await session.get(_address(server)) for _ in range(CLIENTS)]
        assert {each.status for each in listening} == {200}
        async with session.get(_address(server)) as refused:
            assert refused.status == 503
            assert (await refused.json())["error"].startswith(f"{CLIENTS} clients are connected already")
        listening.pop().close()
        async with asyncio.timeout(20):
            while True:
                found = await session.get(_address(server))
                if found.status == 200:
                    break
                found.release()
                await asyncio.sleep(0.05)
        for each in (*listening, found):
            each.close()


async def test_server_stop_ends_event_streams_cleanly(
    tmp_path_factory: pytest.TempPathFactory, session: aiohttp.ClientSession
) -> None:
    """A stopping server ends the chunked response properly, so the client sees no truncated body."""
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        response = await session.get(_address(await start(*DOCUMENTS)))
        assert await response.content.readline() == b"retry: 2000\n"
    async with asyncio.timeout(20):
        await response.content.read()  # raises ClientPayloadError where it was cut off


async def test_event_stream_refuses_another_host_header(
    tmp_path_factory: pytest.TempPathFactory, session: aiohttp.ClientSession
) -> None:
    """A foreign `Host` gets status 421, as on every other path."""
    async with serving(tmp_path_factory.mktemp("mesh")) as start:
        server = await start(*DOCUMENTS)
        async with session.get(_address(server), headers={"Host": "evil.example"}) as response:
            assert response.status == 421
