"""Tests of taps over several servers: the requests to a service are seen from any of them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.api.tap import PATH, add_tap
from meshwright.records.contract import ReplicaId
from meshwright.replicas.state import ReplicaState
from tests.tools.deadline import until
from tests.unit.admin.conftest import NAME, FakeReading
from tests.unit.controller.sharing.peers.some_servers import OneServer, SomeServers, some_servers
from tests.unit.traffic.test_taps import REQUEST

SERVICE = "shop/store"


@asynccontextmanager
async def tapped(server: OneServer, query: str, status: int = 200) -> AsyncIterator[ClientResponse]:
    """Begin a tap at one of several servers."""
    app = web.Application()
    add_tap(app, server.reading, server.taps, server.client)
    async with TestClient(TestServer(app)) as client, client.get(f"{PATH}?{query}") as response:
        assert response.status == status
        yield response


async def line(response: ClientResponse) -> dict[str, Any]:
    """Return the next line of a tap."""
    read = json.loads(await response.content.readline())
    assert isinstance(read, dict)
    return read


def report(servers: SomeServers, name: str) -> bool:
    """Have the store's sidecar report a request to a server; return whether the server wants it."""
    return servers[name].taps.handle_report(NAME, (REQUEST,), 0.0)


@pytest.fixture
def readings(reading: FakeReading) -> dict[str, FakeReading]:
    """Return the readings of two servers that both have a sidecar of the store."""
    return {"a": reading, "b": reading}


async def test_requests_at_all_servers(tmp_path: Path, readings: dict[str, FakeReading]) -> None:
    """Each request names its server, and all sidecars stop reporting when the client is gone."""
    async with some_servers(tmp_path, readings) as servers:
        async with tapped(servers["a"], f"service={SERVICE}") as response:
            assert await line(response) == {"watching": {"service": SERVICE, "proxies": 2}}
            for name in "ba":
                assert report(servers, name)
                request = (await line(response))["request"]
                assert (request["replica"], request["path"]) == (name, "/books/one")
        await until(lambda: not report(servers, "a") and not report(servers, "b"))


@pytest.mark.parametrize("only", ["a", "b"])
async def test_requests_at_one_server(tmp_path: Path, readings: dict[str, FakeReading], only: str) -> None:
    """Sidecars of other servers need not report."""
    async with some_servers(tmp_path, readings) as servers:
        query = f"service={SERVICE}&limit=1&replica={only}"
        async with tapped(servers["a"], query) as response:
            assert await line(response) == {"watching": {"service": SERVICE, "proxies": 1}}
            assert [report(servers, name) for name in "ab"] == [name == only for name in "ab"]
            assert (await line(response))["request"]["replica"] == only
            assert await line(response) == {"ended": "the limit of 1 requests is reached"}


async def test_server_that_is_missing_is_named(tmp_path: Path, readings: dict[str, FakeReading]) -> None:
    """The tap goes on at the others."""
    async with some_servers(tmp_path, readings) as servers:
        servers["a"].membership.hear(
            {ReplicaId("b"): servers["b"].membership.encoded(), ReplicaId("c"): ReplicaState().encode()}
        )
        async with tapped(servers["a"], f"service={SERVICE}") as response:
            assert await line(response) == {"watching": {"service": SERVICE, "proxies": 2}}
            reason = "it does not listen for other servers yet"
            assert await line(response) == {"missing": {"replica": "c", "reason": reason}}
            assert report(servers, "b")
            assert (await line(response))["request"]["replica"] == "b"
        async with tapped(servers["a"], f"service={SERVICE}&replica=d", 404) as response:
            assert await response.json() == {"error": "replica 'd' does not exist: must be one of a, b, c"}


async def test_proxy_is_named_alike_at_all_servers(tmp_path: Path, readings: dict[str, FakeReading]) -> None:
    """A tap of one proxy reaches the proxy's own server under any name."""
    async with (
        some_servers(tmp_path, readings) as servers,
        tapped(servers["a"], "proxy=store-1") as response,
    ):
        assert (await line(response))["watching"]["service"] == SERVICE
        assert report(servers, "b")
        assert (await line(response))["request"]["proxy"] == str(NAME)
