"""The pages over HTTP: JSON for programs, HTML for browsers, for hosts that we know."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from admin import pages
from xds.snapshot import Snapshot

PATHS = ["/debug/proxy", "/debug/xds", "/debug/published", "/debug/policies", "/debug/access"]
PATHS += ["/debug/explain", "/debug/certs", "/debug/config", "/debug/sources"]


@pytest.fixture
async def client(reading: Any, now: Any) -> AsyncIterator[TestClient[Any, Any]]:
    """Serve the pages of the small mesh."""
    reading.the_snapshot = Snapshot.of([])
    app = pages.application(pages.pages(reading, lambda: now), ("mesh.example",))
    async with TestClient(TestServer(app)) as found:
        yield found


async def test_the_index_lists_every_page(client: TestClient[Any, Any]) -> None:
    """What is listed is there."""
    assert list(await (await client.get("/debug")).json()) == PATHS
    for path in ["/", "/debug", "/debug/", *PATHS]:
        response = await client.get(path)
        assert (response.status, response.content_type) == (200, "application/json")


async def test_browsers_get_a_page_without_scripts(client: TestClient[Any, Any]) -> None:
    """The same values, escaped, and a policy that forbids scripts."""
    for path in ["/debug", *PATHS]:
        response = await client.get(path, headers={"Accept": "text/html,*/*"})
        text = await response.text()
        assert (response.status, response.content_type) == (200, "text/html")
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "<script" not in text
        assert 'href="/debug/certs"' in text


@pytest.mark.parametrize("wanted", ["uuid-1", "uuid-1.store.shop"])
async def test_one_proxy_is_found_by_uuid_and_by_name(client: TestClient[Any, Any], wanted: str) -> None:
    """With its configuration, type by type."""
    shown = await (await client.get("/debug/proxy", params={"proxy": wanted})).json()
    assert shown["cn"] == "uuid-1.store.shop"
    assert list(shown["configuration"]) == ["cluster", "endpoint", "secret", "listener", "route"]


async def test_a_call_is_explained(client: TestClient[Any, Any]) -> None:
    """The answer, its steps with places, and what would have to be added; a bad question is said."""
    asked = {"from": "shop/buyer", "to": "shop/store:80", "path": "/sell"}
    shown = await (await client.get("/debug/explain", params=asked)).json()
    assert (shown["answer"], [each["kind"] for each in shown["missing"]]) == (
        "refused",
        ["HTTPRouteGroup", "TrafficTarget"],
    )
    objects = [(each["object"], each["origin"]) for step in shown["steps"] for each in step["objects"]]
    assert ("TrafficTarget shop/buyers", "mesh.yaml:31 (document 5)") in objects
    response = await client.get("/debug/explain", params={"from": "x"})
    assert response.status == 400
    assert await response.json() == {"error": "from is 'x': must be <namespace>/<service account>"}


async def test_an_unknown_proxy_is_said(client: TestClient[Any, Any]) -> None:
    """404, in JSON."""
    response = await client.get("/debug/proxy", params={"proxy": "nobody"})
    assert (response.status, await response.json()) == (404, {"error": "no such proxy"})


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:1", 200), ("mesh.example", 200), ("[::1]:9092", 200), ("evil.example", 421)],
)
async def test_requests_for_other_hosts_are_turned_away(
    client: TestClient[Any, Any], host: str, status: int
) -> None:
    """A name that an attacker's DNS points here is not ours."""
    response = await client.get("/debug/certs", headers={"Host": host})
    assert response.status == status


async def test_nothing_can_be_changed_here(client: TestClient[Any, Any]) -> None:
    """Commands are on the Unix socket alone."""
    assert (await client.post("/certs/revoke", json={"serial": "ab"})).status == 404
    assert (await client.post("/debug/certs")).status == 405
