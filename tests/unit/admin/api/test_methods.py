"""How paths of the API are asked: by the methods that they have (RFC 9110), and errors in JSON alike."""

import asyncio
import io
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from meshwright.admin.api import events, routes
from meshwright.admin.api.mesh import Api
from meshwright.admin.api.openapi import described
from meshwright.admin.api.tap import add_tap
from meshwright.admin.pages import site
from meshwright.admin.pages.trial_runner import TrialRunner
from meshwright.controller.sources import as_read
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import TapChoice
from meshwright.traffic.taps import MOST_TAPS, Taps, TapSubscription, TapTable
from xds.protocol.resources.snapshot import Snapshot

Client = TestClient[Any, Any]
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
READ, WRITTEN = "GET, HEAD", "POST"
ALL = sorted({"/api/v1", "/api/v1/openapi.json", *described(routes.ROUTES)["paths"]})  # type: ignore[misc]


def _apps(reading: Any, now: Any) -> Iterator[web.Application]:
    """Yield both servers that have the API: that of pages, and that of the socket."""
    yield site.application((), (), lambda: now)
    app = web.Application()
    add_tap(app, reading, Taps(TapTable(), lambda _: (), lambda: None))
    yield app


@pytest.fixture(params=[0, 1], ids=["address", "socket"])
async def client(reading: Any, now: Any, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Serve the API of the small mesh."""
    reading.the_snapshot = Snapshot.of([])
    app = list(_apps(reading, now))[request.param]
    routes.add_api(app, Api(reading, lambda: now, TrialRunner(reading, as_read)))
    async with TestClient(TestServer(app)) as found:
        yield found


async def _error(answer: Any) -> str:
    assert answer.content_type == "application/json"
    found = await answer.json()
    assert list(found) == ["error"]
    return str(found["error"])


@pytest.mark.parametrize("headers", [{}, BROWSER], ids=["program", "browser"])
async def test_a_path_says_which_methods_it_has(client: Client, headers: dict[str, str]) -> None:
    """405 has Allow (RFC 9110, 15.5.6) with all that work, HEAD wherever GET does (9.1), and a sentence."""
    paths = [each.replace("{name}", "uuid-1") for each in ALL]
    asked = itertools.product(paths, ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"))
    for path, method in asked:
        there = WRITTEN if path == "/api/v1/try" else READ
        if method in there.split(", "):
            continue
        answer = await client.request(method, path, headers=headers)
        assert (method, answer.status, answer.headers.get("Allow")) == (method, 405, there)
        assert answer.headers["Cache-Control"] == "no-store"
        if method != "HEAD":
            assert path in await _error(answer)


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/", "/api/v1/try/", "/api/v1/proxies/a/b/c"])
async def test_what_is_not_there_is_so_by_every_method(client: Client, path: str) -> None:
    """404, and not 405: there is no method by which it would be there."""
    for method, headers in itertools.product(("GET", "POST", "PUT", "OPTIONS"), ({}, BROWSER)):
        answer = await client.request(method, path, headers=headers)
        assert (answer.status, "Allow" in answer.headers) == (404, False)
        assert await _error(answer) == f"there is no page at {path}"


async def test_head_is_get_without_the_content(client: Client) -> None:
    """RFC 9110, 9.3.2: the same status and type, also of an error."""
    for path in (each.replace("{name}", "uuid-1") for each in ALL if each != "/api/v1/events"):
        head, get = await client.head(path), await client.get(path)
        assert (path, head.status, head.content_type) == (path, get.status, get.content_type)
        assert await head.read() == b""


async def test_head_of_the_events_holds_no_stream(client: Client) -> None:
    """The headers of a stream, at once, however often; those who listen keep their places."""
    for _ in range(events.CLIENTS + 1):
        async with asyncio.timeout(5):
            answer = await client.head("/api/v1/events")
            assert (answer.status, answer.content_type, await answer.read()) == (
                200,
                "text/event-stream",
                b"",
            )
            assert "Content-Length" not in answer.headers
    listening = [await client.get("/api/v1/events") for _ in range(events.CLIENTS)]
    assert {each.status for each in listening} == {200}
    assert ((await client.head("/api/v1/events")).status, (await client.get("/api/v1/events")).status) == (
        503,
        503,
    )
    for each in listening:
        each.close()


async def test_head_of_what_is_watched_has_nobody_tell(reading: Any) -> None:
    """What cannot be watched is refused as by GET."""
    taps = Taps(TapTable(), lambda _: (), lambda: None)
    app = web.Application()
    add_tap(app, reading, taps)
    async with TestClient(TestServer(app)) as client, asyncio.timeout(20):
        for _ in range(MOST_TAPS + 1):
            answer = await client.head("/api/v1/tap?service=shop/store")
            assert (answer.status, answer.content_type) == (200, "application/x-ndjson")
        assert (await client.head("/api/v1/tap?proxy=nobody")).status == 404
    watched = TapSubscription(ServiceKey(Namespace("shop"), ServiceName("store")), TapChoice())
    assert len([taps.begin(watched, lambda: None) for _ in range(MOST_TAPS)]) == MOST_TAPS


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (None, 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=a", 415),
        ("application/jsonp", 415),
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
    ],
)
async def test_what_is_tried_is_json(client: Client, sent: str | None, status: int) -> None:
    """By its media type, in any case and with parameters (RFC 9110, 8.3.1); 415 says which it must be."""
    body = json.dumps({"manifests": ""}).encode()
    skipped = ("Content-Type",) if sent is None else ()
    headers = {} if sent is None else {"Content-Type": sent}
    answer = await client.post("/api/v1/try", data=body, headers=headers, skip_auto_headers=skipped)
    assert (answer.status, answer.content_type) == (status, "application/json")
    if status == 415:
        assert answer.headers["Accept"] == "application/json"
        assert "application/json" in await _error(answer)


async def test_the_description_says_what_the_paths_do(client: Client) -> None:
    """Its operations are what Allow has, less HEAD, which every GET has beside it."""
    document = await (await client.get("/api/v1/openapi.json")).json()
    for path, item in document["paths"].items():
        answer = await client.delete(path.replace("{name}", "uuid-1"))
        there = set(answer.headers["Allow"].split(", ")) - {"HEAD"}
        assert {each.upper() for each in item} == there
    refused = document["paths"]["/api/v1/try"]["post"]["responses"]
    assert sorted(refused) == ["200", "400", "403", "413", "415", "503"]


async def test_manifests_that_are_too_long_are_said_to_be(client: Client) -> None:
    """413 (RFC 9110, 15.5.14), be it they or the body that has them."""
    for given in ("#" * (256 * 1024 + 1), "\n" * (6 * 256 * 1024)):
        body = json.dumps({"manifests": given}).encode()
        answer = await client.post(
            "/api/v1/try", data=io.BytesIO(body), headers={"Content-Type": "application/json"}
        )
        assert answer.status == 413
        assert "bytes" in await _error(answer)
