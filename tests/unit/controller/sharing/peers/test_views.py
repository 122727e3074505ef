"""Tests of pages and API over several servers: every view is the same from each of them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.api.mesh import Api
from meshwright.admin.api.routes import ROUTES, add_api
from meshwright.admin.api.table import PREFIX
from meshwright.admin.pages import routes, site
from meshwright.admin.pages.trial_runner import TrialRunner
from meshwright.admin.replicas.pulse import ServerFacts
from meshwright.admin.replicas.view import Scope
from meshwright.delivery.proxies.held_certificates import HeldCertificate
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName
from meshwright.records.contract import ReplicaId
from meshwright.replicas.state import ReplicaState
from tests.unit.admin.conftest import NAME, NOW, FakeReading, stream, type_status
from tests.unit.controller.sharing.peers.some_servers import OneServer, some_servers
from xds.cache import NodeKey
from xds.protocol.resources.resource import ROUTE, ResourceName
from xds.stream_status import SyncState

BUYER: Final = ProxyName.parse("uuid-2.buyer.shop")
QUERIES: Final = {
    "/proxies/{name}": "/proxies/uuid-1",
    "/proxies/{name}/pushes": "/proxies/uuid-1/pushes",
    "/proxies/{name}/configuration": "/proxies/uuid-1/configuration",
    "/explain": "/explain?from=shop/buyer&to=shop/store:80",
    "/connectivity": "/connectivity?from=shop/buyer&to=shop/store:80",
}
OF_MOMENTS: Final = ("at", "since", "last_sent", "seconds_left", "window_seconds")
TIMES: Final = (*OF_MOMENTS, "age", "age_seconds", "event_age", "event_age_seconds")
"""Fields that differ from answer to answer."""
OF_ALL: Final = [route for route in ROUTES if route.scope is not Scope.OWN]


@pytest.fixture
def readings(reading: FakeReading) -> dict[str, FakeReading]:
    """Return the readings of two servers: the store's proxy is connected to b, and the buyer's to a."""
    expected = {name: ProxyStatus(name, ProxyState.EXPECTED, "", NOW, True) for name in (NAME, BUYER)}
    buyer = replace(stream(1, type_status(SyncState.SYNCED)), node_key=NodeKey(str(BUYER)))
    here = replace(
        reading,
        the_streams=(buyer,),
        the_proxies=(expected[NAME], ProxyStatus(BUYER, ProxyState.CONNECTED, "ipv4:10.0.0.2:5", NOW, True)),
        the_pushes=(),
        the_problems=(),
    )
    there = replace(
        reading,
        the_proxies=(*reading.the_proxies, expected[BUYER]),
        the_held={NAME: HeldCertificate("1f", NOW)},
        the_rejected=((ROUTE, ResourceName("r")),),
        the_refusals={(NAME, ROUTE, ResourceName("r")): "bad"},
        the_problems=(),
    )
    return {"a": here, "b": there}


@asynccontextmanager
async def api_of(server: OneServer) -> AsyncIterator[TestClient[Any, Any]]:
    """Serve API and pages of one of several servers."""
    from tests.unit.controller.sharing.peers.some_servers import now

    trying = TrialRunner(server.reading, lambda _: ())  # type: ignore[arg-type, return-value]
    app = site.application(routes.pages(server.reading, now, trying, server.views), ("127.0.0.1",), now)
    add_api(app, Api(server.reading, now, trying, server.views))
    async with TestClient(TestServer(app)) as client:
        yield client


async def asked(server: OneServer, path: str, status: int = 200) -> dict[str, Any]:
    """Return the answer of one server."""
    async with api_of(server) as client:
        response = await client.get(path)
        document = await response.json()
        assert response.status == status, document
        assert isinstance(document, dict)
        return document


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(item) for name, item in value.items() if name not in TIMES}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


async def test_each_view_is_the_same_from_every_server(
    tmp_path: Path, readings: dict[str, FakeReading]
) -> None:
    """It is complete, and no server is missing."""
    async with some_servers(tmp_path, readings) as servers:
        for route in OF_ALL:
            path = PREFIX + QUERIES.get(route.path, route.path)
            one, two = [await asked(servers[name], path) for name in "ab"]
            assert (path, _without_times(one)) == (path, _without_times(two))
            assert (path, one["partial"]) == (path, [])


async def test_proxies_of_all_servers(tmp_path: Path, readings: dict[str, FakeReading]) -> None:
    """Each proxy is connected, with its server and the reason that only this server knows."""
    async with some_servers(tmp_path, readings) as servers:
        result = await asked(servers["a"], f"{PREFIX}/proxies")
    fields = [[proxy[name] for name in ("name", "state", "replica")] for proxy in result["proxies"]]
    assert fields == [[str(NAME), "connected", "b"], [str(BUYER), "connected", "a"]]
    assert result["proxies"][0]["why"].endswith("rejected: bad")


async def test_one_proxy_at_another_server(tmp_path: Path, readings: dict[str, FakeReading]) -> None:
    """The server that has the proxy answers, under any name of the proxy."""
    async with some_servers(tmp_path, readings) as servers:
        for name in ("uuid-1", "store-1", str(NAME), "shop%2Fstore-1"):
            result = await asked(servers["a"], f"{PREFIX}/proxies/{name}")
            assert (result["name"], result["state"], result["replica"]) == (str(NAME), "connected", "b")
        pushes = await asked(servers["a"], f"{PREFIX}/proxies/uuid-1/pushes")
        assert [push["replica"] for push in pushes["pushes"]] == ["b"]
        missing = await asked(servers["a"], f"{PREFIX}/proxies/nobody", 404)
        assert missing["error"].startswith("proxy 'nobody' does not exist")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/proxies?replica=b", [str(NAME)]),
        ("/proxies?replica=a", [str(BUYER)]),
    ],
)
async def test_one_server_alone(
    tmp_path: Path, readings: dict[str, FakeReading], path: str, found: list[str]
) -> None:
    """The parameter `replica` asks for the answer of one server about its own proxies."""
    async with some_servers(tmp_path, readings) as servers:
        for name in "ab":
            result = await asked(servers[name], PREFIX + path)
            connected = [proxy["name"] for proxy in result["proxies"] if proxy["state"] == "connected"]
            assert (connected, result["replica"], result["partial"]) == (found, path[-1], [])


async def test_every_route_can_be_asked_of_one_server(
    tmp_path: Path, readings: dict[str, FakeReading]
) -> None:
    """Also those that each server answers about itself, such as the moments at which its loop was blocked."""
    async with some_servers(tmp_path, readings) as servers:
        for route in ROUTES:
            path = PREFIX + QUERIES.get(route.path, route.path)
            more = "&namespace=shop" if "hosts" in path else ""
            path = f"{path}{'&' if '?' in path else '?'}replica=b{more}"
            one, two = [await asked(servers[name], path) for name in "ab"]
            assert (path, one["replica"], one["partial"]) == (path, "b", [])
            assert (path, _without_times(one)) == (path, _without_times(two))


async def test_unknown_and_silent_servers(tmp_path: Path, readings: dict[str, FakeReading]) -> None:
    """A view names a server that does not answer, and goes on; a question to that server fails."""
    async with some_servers(tmp_path, readings) as servers:
        unknown = await asked(servers["a"], f"{PREFIX}/proxies?replica=c", 404)
        assert unknown == {"error": "replica 'c' does not exist: must be one of a, b"}
        servers["a"].membership.hear(
            {ReplicaId("b"): servers["b"].membership.encoded(), ReplicaId("c"): ReplicaState().encode()}
        )
        silent = {"replica": "c", "reason": "it does not listen for other servers yet"}
        for route in OF_ALL:
            result = await asked(servers["a"], PREFIX + QUERIES.get(route.path, route.path))
            assert result["partial"] == [silent], route.path
        failed = await asked(servers["a"], f"{PREFIX}/proxies?replica=c", 502)
        assert failed == {"error": "server c did not answer: it does not listen for other servers yet"}


async def test_list_of_servers(tmp_path: Path, readings: dict[str, FakeReading]) -> None:
    """The servers are the same from each, with the age of the store's last answer at each."""
    async with some_servers(tmp_path, readings) as servers:
        servers["b"].facts = ServerFacts(3.0, {"verify": "1"})
        servers["a"].facts = ServerFacts(1.0, {"verify": "2"})
        result = await asked(servers["a"], f"{PREFIX}/replicas")
        fields = ("replica", "state", "store_age_seconds", "differing_settings")
        assert [[item[name] for name in fields] for item in result["replicas"]] == [
            ["a", "ready", 1.0, []],
            ["b", "ready", 3.0, ["verify"]],
        ]
        async with api_of(servers["b"]) as client:
            page = await (await client.get("/debug/replicas", headers={"Accept": "text/html"})).text()
        assert "2 servers; other settings at a." in page


@pytest.mark.parametrize(
    "path",
    [
        "/debug",
        "/debug/proxy",
        "/debug/proxy?proxy=uuid-1",
        "/debug/proxy/show?proxy=uuid-1",
        "/debug/xds",
        "/debug/xds?proxy=uuid-1",
        "/debug/published",
        "/debug/policies",
        "/debug/traffic",
        "/debug/topology",
        "/debug/explain?from=shop/buyer&to=shop/store:80",
        "/debug/connectivity?from=shop/buyer&to=shop/store:80",
        "/debug/certs",
        "/debug/loop?replica=b",
    ],
)
async def test_pages_of_all_servers(tmp_path: Path, readings: dict[str, FakeReading], path: str) -> None:
    """Pages are drawn over all servers, and warn of one that is missing."""
    async with some_servers(tmp_path, readings) as servers:
        servers["a"].membership.hear(
            {ReplicaId("b"): servers["b"].membership.encoded(), ReplicaId("c"): ReplicaState().encode()}
        )
        async with api_of(servers["a"]) as client:
            response = await client.get(path, headers={"Accept": "text/html"})
            page = await response.text()
    assert response.status == 200, page
    if path != "/debug" and "replica=" not in path:
        assert "c: it does not listen for other servers yet" in page
    if path == "/debug/proxy":
        assert "Replica" in page


async def test_changes_at_other_servers_are_events(tmp_path: Path, readings: dict[str, FakeReading]) -> None:
    """A proxy that disconnects from another server has gone, and one that moves has not."""
    async with (
        some_servers(tmp_path, readings) as servers,
        api_of(servers["a"]) as client,
        client.get(f"{PREFIX}/events") as response,
    ):
        assert await response.content.readline() == b"retry: 2000\n"
        # The buyer moves from a to b, and the store's proxy disconnects from b.
        here, there = readings["a"].the_proxies, readings["b"].the_proxies
        readings["a"].the_proxies = (here[0], replace(here[1], state=ProxyState.DISCONNECTED))
        readings["b"].the_proxies = (replace(there[0], state=ProxyState.DISCONNECTED), here[1])
        event = dict[str, Any]()
        while not event.get("went"):
            line = await response.content.readline()
            if line.startswith(b"data: "):
                event = json.loads(line.removeprefix(b"data: "))
        assert (event["came"], event["went"]) == ([], [str(NAME)])
