"""The route table of the debug pages: JSON for programs, a plain page of the same for browsers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from admin import debug, explaining
from admin.decoding import decoded
from admin.guard import known_hosts_only
from admin.html import SECURITY_HEADERS, page
from admin.jsonable import Json
from admin.publishing import published
from admin.reading import MeshReading
from mesh.identity import ProxyName


@dataclass(frozen=True, slots=True)
class Page:
    """A path, what it shows, and what answers it."""

    path: str
    shows: str
    answer: Callable[[web.Request], Awaitable[debug.Document]]


def answer(request: web.Request, value: Json, links: Iterable[str] = (), status: int = 200) -> web.Response:
    """Return `value` as JSON, or as a page if the client is a browser."""
    headers = dict(SECURITY_HEADERS)
    if "text/html" in request.headers.get("Accept", ""):
        text = page(request.path, value, tuple(links))
        return web.Response(text=text, content_type="text/html", headers=headers, status=status)
    return web.json_response(value, headers=headers, status=status)


def pages(reading: MeshReading, clock: Callable[[], datetime]) -> tuple[Page, ...]:
    """Return the pages over one reading."""

    def of(function: Callable[[], debug.Document]) -> Callable[[web.Request], Awaitable[debug.Document]]:
        async def made(_request: web.Request) -> debug.Document:
            return function()

        return made

    async def proxy(request: web.Request) -> debug.Document:
        if (wanted := request.query.get("proxy")) is not None:
            return await _one_proxy(reading, wanted)
        return debug.proxies(reading)

    async def access(_request: web.Request) -> debug.Document:
        # Identities times services: not for the event loop.
        return await asyncio.to_thread(debug.access, reading)

    async def explain(request: web.Request) -> debug.Document:
        return await asyncio.to_thread(_explained, reading, request)

    return (
        Page(
            "/debug/proxy", "proxies connected, expected, disconnected; ?proxy=<uuid or name>: one's", proxy
        ),
        Page("/debug/xds", "streams: per type version, nonce, ACK or NACK", of(lambda: debug.xds(reading))),
        Page("/debug/published", "resources of each proxy, by version", of(lambda: published(reading))),
        Page("/debug/policies", "objects in force, and problems", of(lambda: debug.policies(reading))),
        Page("/debug/access", "who may call what, and by which object", access),
        Page("/debug/explain", "why a call may pass or not; ?from=&to=&method=&path=&header=", explain),
        Page("/debug/certs", "certificates issued", of(lambda: debug.certificates(reading, clock()))),
        Page("/debug/config", "MeshConfig and settings", of(lambda: debug.config(reading))),
        Page("/debug/sources", "how fresh each source is", of(lambda: debug.sources(reading, clock()))),
    )


def _explained(reading: MeshReading, request: web.Request) -> debug.Document:
    view = reading.view()
    if view is None:
        raise web.HTTPNotFound(reason="nothing has been read yet")
    if not request.query:
        return {"usage": explaining.USAGE}
    try:
        asked = explaining.read_request(request.query, request.query.getall("header", []))
    except explaining.QueryError as error:
        raise web.HTTPBadRequest(reason=str(error)) from error
    return explaining.answer(view, asked)


async def _one_proxy(reading: MeshReading, wanted: str) -> debug.Document:
    named = [each for each in reading.proxies() if wanted in (str(each.name), each.name.uuid)]
    if not named:
        raise web.HTTPNotFound(reason="no such proxy")
    name: ProxyName = named[0].name
    snapshot = reading.snapshot(name)
    streams = [status for status in reading.streams() if status.node_key == str(name)]
    shown = debug.proxy(named[0], streams, reading.view())
    shown["configuration"] = None if snapshot is None else await asyncio.to_thread(decoded, snapshot)
    return shown


def add_pages(app: web.Application, all_pages: Iterable[Page]) -> None:
    """Add the pages and their index, `/debug`, to an application."""
    listed = tuple(all_pages)
    links = ("/debug", *(each.path for each in listed))

    async def index(request: web.Request) -> web.Response:
        return answer(request, {each.path: each.shows for each in listed}, links)

    def handler(shown: Page) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            try:
                return answer(request, await shown.answer(request), links)
            except (web.HTTPNotFound, web.HTTPBadRequest) as error:
                return answer(request, {"error": error.reason}, links, error.status)

        return handle

    async def to_index(_request: web.Request) -> web.Response:
        raise web.HTTPFound("/debug")

    app.router.add_get("/", to_index)
    app.router.add_get("/debug", index)
    app.router.add_get("/debug/", index)
    for each in listed:
        app.router.add_get(each.path, handler(each))


def application(all_pages: Iterable[Page], hosts: Iterable[str]) -> web.Application:
    """Build the debug server: GET only, for known hosts only."""
    app = web.Application(middlewares=[known_hosts_only(hosts)])
    add_pages(app, all_pages)
    return app
