"""Tests of the API's methods by path (RFC 9110), and of its errors, which are always JSON."""

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
    """Yield both applications that serve the API: that of the pages and that of the socket."""
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
    async with TestClient(TestServer(app)) as test_client:
        yield test_client


async def _error(answer: Any) -> str:
    assert answer.content_type == "application/json"
    result = await answer.json()
    assert list(result) == ["error"]
    return str(result["error"])


@pytest.mark.parametrize("headers", [{}, BROWSER], ids=["program", "browser"])
async def test_unsupported_method_gets_405_with_the_allowed_methods(
    client: Client, headers: dict[str, str]
) -> None:
    """An unsupported method gets 405 with `Allow` (RFC 9110, 15.5.6) and an error that names the path.

    Every path with GET has HEAD too (9.1).
    """
    paths = [item.replace("{name}", "uuid-1") for item in ALL]
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
async def test_unknown_path_is_404_for_every_method(client: Client, path: str) -> None:
    """An unknown path gets 404 without `Allow`, not 405, because no method would find a page there."""
    for method, headers in itertools.product(("GET", "POST", "PUT", "OPTIONS"), ({}, BROWSER)):
        answer = await client.request(method, path, headers=headers)
        assert (answer.status, "Allow" in answer.headers) == (404, False)
        assert await _error(answer) == f"there is nothing at {path}"


async def test_head_is_get_without_the_content(client: Client) -> None:
    """HEAD has the same status and type as GET and an empty body, also for errors (RFC 9110, 9.3.2)."""
    for path in (item.replace("{name}", "uuid-1") for item in ALL if item != "/api/v1/events"):
        head, get = await client.head(path), await client.get(path)
        assert (path, head.status, head.content_type) == (path, get.status, get.content_type)
        assert await head.read() == b""


async def test_head_of_the_events_opens_no_stream(client: Client) -> None:
    """HEAD of the events answers at once and takes none of the places for listeners.

    If all places are taken, HEAD and GET get 503.
    """
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
    assert {client_response.status for client_response in listening} == {200}
    assert ((await client.head("/api/v1/events")).status, (await client.get("/api/v1/events")).status) == (
        503,
        503,
    )
    for client_response in listening:
        client_response.close()


async def test_head_of_a_tap_starts_no_tap(reading: Any) -> None:
    """HEAD of a tap takes none of the taps that may run at a time, and an unknown proxy gets 404."""
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
async def test_trial_accepts_only_the_media_type_json(client: Client, sent: str | None, status: int) -> None:
    """A trial needs the media type `application/json`, in any case and with parameters (RFC 9110, 8.3.1).

    Other types get 415 with the accepted type.
    """
    body = json.dumps({"manifests": ""}).encode()
    skipped = ("Content-Type",) if sent is None else ()
    headers = {} if sent is None else {"Content-Type": sent}
    answer = await client.post("/api/v1/try", data=body, headers=headers, skip_auto_headers=skipped)
    assert (answer.status, answer.content_type) == (status, "application/json")
    if status == 415:
        assert answer.headers["Accept"] == "application/json"
        assert "application/json" in await _error(answer)


async def test_openapi_operations_are_the_allowed_methods(client: Client) -> None:
    """The operations of the OpenAPI document equal the methods in `Allow`.

    HEAD is left out, because every GET implies it.
    """
    document = await (await client.get("/api/v1/openapi.json")).json()
    for path, item in document["paths"].items():
        answer = await client.delete(path.replace("{name}", "uuid-1"))
        there = set(answer.headers["Allow"].split(", ")) - {"HEAD"}
        assert {element.upper() for element in item} == there
    refused = document["paths"]["/api/v1/try"]["post"]["responses"]
    assert sorted(refused) == ["200", "400", "403", "413", "415", "503"]


async def test_too_long_manifests_or_body_get_413(client: Client) -> None:
    """Manifests or a body over their limits get 413 (RFC 9110, 15.5.14) with an error that mentions bytes."""
    for given in ("#" * (256 * 1024 + 1), "\n" * (6 * 256 * 1024)):
        body = json.dumps({"manifests": given}).encode()
        answer = await client.post(
            "/api/v1/try", data=io.BytesIO(body), headers={"Content-Type": "application/json"}
        )
        assert answer.status == 413
        assert "bytes" in await _error(answer)
