"""The route table of the debug pages: what answers each, and how it looks to people."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from functools import partial

from aiohttp import web

from admin.html.looks import access as accesses
from admin.html.looks import connectivity as connections
from admin.html.looks import explain as explanations
from admin.html.looks import mesh, policies, proxies, pushes, versions
from admin.pages import access_line, connectivity, debug
from admin.pages import explain as explaining
from admin.pages import proxy as proxy_pages
from admin.pages.certificates import certificates
from admin.pages.glance import Glances
from admin.pages.jsonable import Document
from admin.pages.published import published
from admin.pages.sidecars import known_sidecars
from admin.pages.site import Page
from admin.pages.sources import sources
from admin.pages.streams import streams
from admin.reading import MeshReading


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

    async def access(request: web.Request) -> Document:
        # Identities times services: not for the event loop.
        return await asyncio.to_thread(debug.access, reading, request.query.get("source"))

    async def certified(_request: web.Request) -> Document:
        return await certificates(reading, clock())

    async def in_force(request: web.Request) -> Document:
        return debug.policies(reading, await reading.problems(), request.query.get("object"))

    glance = Glances(reading, clock)
    return (
        Page(
            "/debug/proxy",
            "every proxy, in step or why not; ?proxy=: one's configuration",
            proxy,
            proxies.PROXIES,
            glance.proxies,
        ),
        Page(
            "/debug/proxy/show",
            "what one proxy was told, in the mesh's words; ?proxy=&section=",
            show,
            proxies.TOLD,
        ),
        Page(
            "/debug/xds",
            "streams by type; ?proxy=[&resource=TYPE/NAME]: one's last pushes",
            xds,
            pushes.STREAMS,
            glance.streams,
        ),
        Page(
            "/debug/xds/diff",
            "two versions of a resource; ?proxy=&type=&name=[&from=&to=]",
            diff,
            versions.DIFFERENCE,
        ),
        Page("/debug/published", "resources of each proxy, by version", all_published, versions.PUBLISHED),
        Page(
            "/debug/policies",
            "objects in force, and problems",
            in_force,
            policies.POLICIES,
            glance.policies,
        ),
        Page("/debug/access", "who may call what, and by which object", access, accesses.ACCESS),
        Page(
            "/debug/explain",
            "why a call may pass or not; ?from=&to=&method=&path=&header=",
            partial(_explained, reading),
            explanations.EXPLAIN,
        ),
        Page(
            "/debug/connectivity",
            "how it stands with all that a call goes by; as explain",
            partial(_connected, reading, clock),
            connections.CONNECTIVITY,
        ),
        Page(
            "/debug/certs",
            "certificates issued",
            certified,
            mesh.CERTIFICATES,
            glance.certificates,
        ),
        Page("/debug/config", "MeshConfig and settings", of(lambda: debug.config(reading)), mesh.CONFIG),
        Page(
            "/debug/loop",
            "when the event loop was held, and by what",
            of(lambda: debug.loop(reading)),
            mesh.LOOP,
            glance.loop,
        ),
        Page(
            "/debug/sources",
            "sources: how fresh, what they hold",
            of(lambda: sources(reading, clock())),
            mesh.SOURCES,
            glance.sources,
        ),
    )


async def _connected(reading: MeshReading, clock: Callable[[], datetime], request: web.Request) -> Document:
    headers = request.query.getall("header", [])
    with _understood():
        return await connectivity.connectivity(reading, request.query, headers, clock())


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Answer 400 with the sentence where a question cannot be understood."""
    try:
        yield
    except explaining.QueryError as error:
        raise web.HTTPBadRequest(reason=str(error)) from error


async def _explained(reading: MeshReading, request: web.Request) -> Document:
    view = reading.view()
    if view is None:
        raise web.HTTPNotFound(reason="nothing has been read yet")
    if not request.query:
        return {"usage": explaining.USAGE}
    with _understood():
        question = access_line.question(view, request.query, request.query.getall("header", []))
        if (outside := explaining.read_outside(view, question.query)) is not None:
            return explaining.outside(outside)
        asked = explaining.read_request(question.query, question.headers)
    found, names = await asyncio.to_thread(explaining.explained, view, asked)
    held = await asyncio.to_thread(explaining.held, view, found, known_sidecars(reading, names))
    return held | {"logged": dict(question.logged)}
