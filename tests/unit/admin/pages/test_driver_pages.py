"""Tests of drivers' pages: a proxy is found by the same names as on all other pages."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.pages import routes, site
from meshwright.admin.pages.driver_pages import of_drivers
from meshwright.controller.drivers import DriverPages
from meshwright.sidecars.contract.errors import NothingThereError
from xds.protocol.resources.snapshot import Snapshot

Client = TestClient[Any, Any]
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
async def client(reading: Any, now: Any) -> AsyncIterator[Client]:
    """Serve the pages of the small mesh, and one page of a driver."""
    reading.the_snapshot = Snapshot.of([])
    pages = DriverPages()

    async def answer(query: Mapping[str, str]) -> Mapping[str, object]:
        if "none" in query:
            raise NothingThereError("the driver does not have a document for proxy it")
        return {"asked": dict(query)}

    pages.page("/debug/documents", "documents", answer)
    app = site.application(
        routes.pages(reading, lambda: now), (), lambda: now, of_drivers(reading, pages.pages)
    )
    async with TestClient(TestServer(app)) as test_client:
        yield test_client


@pytest.mark.parametrize("nobody", ["nobody", "uuid-9.store.shop", "not a name", "%0A", "a" * 300, ""])
@pytest.mark.parametrize(
    "path",
    [
        "/debug/proxy?",
        "/debug/proxy/show?",
        "/debug/proxy/show?section=routes&",
        "/debug/xds?",
        "/debug/xds?resource=route/a&",
        "/debug/xds/diff?type=route&name=a&",
        "/debug/documents?",
    ],
)
async def test_unknown_proxy_is_404_with_the_known_proxies(client: Client, path: str, nobody: str) -> None:
    """On every page an unknown proxy gets 404 with the list of known proxies.

    A browser's empty field is ignored.
    """
    answer = await client.get(f"{path}proxy={nobody}")
    result = await answer.json()
    assert (answer.status, list(result)) == (404, ["error"])
    assert result["error"].startswith("proxy '")
    assert result["error"].endswith(" does not exist; known proxies: shop/store-1 (uuid-1.store.shop)")
    if nobody:  # an empty field of a browser's form is ignored
        shown = await client.get(f"{path}proxy={nobody}", headers=BROWSER)
        assert (shown.status, shown.content_type) == (404, "text/html")
        assert "does not exist; known proxies: shop/store-1" in await shown.text()


@pytest.mark.parametrize("named", ["uuid-1", "uuid-1.store.shop", "shop/store-1", "store-1", "uui"])
async def test_driver_is_asked_with_the_proxy_s_full_name(client: Client, named: str) -> None:
    """Any name of a proxy is replaced by its common name; other parameters are passed on."""
    result = await (await client.get(f"/debug/documents?proxy={named}&a=b")).json()
    assert result == {"asked": {"proxy": "uuid-1.store.shop", "a": "b"}}
    assert await (await client.get("/debug/documents")).json() == {"asked": {}}


async def test_missing_document_of_a_driver_is_404(client: Client) -> None:
    """A missing document gets 404 with the driver's own message."""
    answer = await client.get("/debug/documents?none")
    assert (answer.status, await answer.json()) == (
        404,
        {"error": "the driver does not have a document for proxy it"},
    )
    assert (
        "the driver does not have a document for proxy it"
        in await (await client.get("/debug/documents?none=1", headers=BROWSER)).text()
    )
