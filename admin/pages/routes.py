"""The route table of the debug pages: JSON for programs, a plain page of the same for browsers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from admin.http.guard import known_hosts_only
from admin.pages import access_line, debug
from admin.pages import explain as explaining
from admin.pages import proxy as proxy_pages
from admin.pages.certificates import certificates
from admin.pages.html import SECURITY_HEADERS, page
from admin.pages.jsonable import Document, Json
from admin.pages.naming import NotShown
from admin.pages.published import published
from admin.pages.sidecars import known_sidecars
from admin.pages.sources import sources
from admin.pages.streams import streams
from admin.reading import MeshReading


@dataclass(frozen=True, slots=True)
class Page:
    """A path, what it shows, and what answers it."""

    path: str
    shows: str
    answer: Callable[[web.Request], Awaitable[Document]]


def answer(request: web.Request, value: Json, links: Iterable[str] = (), status: int = 200) -> web.Response:
    """Return `value` as JSON, or as a page if the client is a browser."""
    headers = dict(SECURITY_HEADERS)
    if "text/html" in request.headers.get("Accept", ""):
        text = page(request.path, value, tuple(links))
        return web.Response(text=text, content_type="text/html", headers=headers, status=status)
    return web.json_response(value, headers=headers, status=status)


def pages(reading: MeshReading, clock: Callable[[], datetime]) -> tuple[Page, ...]:
    """Return the pages over one reading."""

    def of(function: Callable[[], Document]) -> Callable[[web.Request], Awaitable[Document]]:
        async def made(_request: web.Request) -> Document:
            return function()

        return made

    async def proxy(request: web.Request) -> Document:
        if (wanted := request.query.get("proxy")) is not None:
            return await proxy_pages.configured(reading, wanted, clock())
        return await proxy_pages.listed(reading, clock())

    async def show(request: web.Request) -> Document:
        return await proxy_pages.told(reading, request.query, clock())

    async def xds(request: web.Request) -> Document:
        return proxy_pages.pushed(reading, request.query) if "proxy" in request.query else streams(reading)

    async def diff(request: web.Request) -> Document:
        return await proxy_pages.differing(reading, request.query)

    async def all_published(_request: web.Request) -> Document:
        return await published(reading)

    async def access(_request: web.Request) -> Document:
        # Identities times services: not for the event loop.
        return await asyncio.to_thread(debug.access, reading)

    async def policies(_request: web.Request) -> Document:
        return debug.policies(reading, await reading.problems())

    async def explain(request: web.Request) -> Document:
        return await _explained(reading, request)

    return (
        Page("/debug/proxy", "every proxy, in step or why not; ?proxy=: one's configuration", proxy),
        Page("/debug/proxy/show", "what one proxy was told, in the mesh's words; ?proxy=&section=", show),
        Page("/debug/xds", "streams by type; ?proxy=[&resource=TYPE/NAME]: one's last pushes", xds),
        Page("/debug/xds/diff", "two versions of a resource; ?proxy=&type=&name=[&from=&to=]", diff),
        Page("/debug/published", "resources of each proxy, by version", all_published),
        Page("/debug/policies", "objects in force, and problems", policies),
        Page("/debug/access", "who may call what, and by which object", access),
        Page("/debug/explain", "why a call may pass or not; ?from=&to=&method=&path=&header=", explain),
        Page("/debug/certs", "certificates issued", of(lambda: certificates(reading, clock()))),
        Page("/debug/config", "MeshConfig and settings", of(lambda: debug.config(reading))),
        Page("/debug/loop", "when the event loop was held, and by what", of(lambda: debug.loop(reading))),
        Page("/debug/sources", "sources: how fresh, what they hold", of(lambda: sources(reading, clock()))),
    )


async def _explained(reading: MeshReading, request: web.Request) -> Document:
    view = reading.view()
    if view is None:
        raise web.HTTPNotFound(reason="nothing has been read yet")
    if not request.query:
        return {"usage": explaining.USAGE}
    try:
        question = access_line.question(view, request.query, request.query.getall("header", []))
        if (outside := explaining.read_outside(view, question.query)) is not None:
            return explaining.outside(outside)
        asked = explaining.read_request(question.query, question.headers)
    except explaining.QueryError as error:
        raise web.HTTPBadRequest(reason=str(error)) from error
    found, names = await asyncio.to_thread(explaining.explained, view, asked)
    held = await asyncio.to_thread(explaining.held, view, found, known_sidecars(reading, names))
    return held | {"logged": dict(question.logged)}


def add_pages(
    app: web.Application, all_pages: Iterable[Page], further: Callable[[], Iterable[Page]] = tuple
) -> None:
    """Add the pages and their index, `/debug`, to an application; `further` pages may come while it runs."""
    first = tuple(all_pages)

    def listed() -> tuple[Page, ...]:
        return (*first, *further())

    def links() -> tuple[str, ...]:
        return ("/debug", *(each.path for each in listed()))

    async def index(request: web.Request) -> web.Response:
        return answer(request, {each.path: each.shows for each in listed()}, links())

    async def handle(request: web.Request) -> web.Response:
        shown = next((each for each in listed() if each.path == request.path), None)
        try:
            if shown is None:
                raise NotShown(f"there is no page {request.path}")
            return answer(request, await shown.answer(request), links())
        except NotShown as error:
            return answer(request, {"error": str(error)}, links(), 404)
        except (web.HTTPNotFound, web.HTTPBadRequest) as error:
            return answer(request, {"error": error.reason}, links(), error.status)

    async def to_index(_request: web.Request) -> web.Response:
        raise web.HTTPFound("/debug")

    app.router.add_get("/", to_index)
    app.router.add_get("/debug", index)
    app.router.add_get("/debug/", index)
    app.router.add_get("/debug/{path:.+}", handle)


def application(
    all_pages: Iterable[Page], hosts: Iterable[str], further: Callable[[], Iterable[Page]] = tuple
) -> web.Application:
    """Build the debug server: GET only, for known hosts only."""
    app = web.Application(middlewares=[known_hosts_only(hosts)])
    add_pages(app, all_pages, further)
    return app
