"""Handlers of the debug pages: each calls the function for the JSON of the page."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from meshwright.admin.jsonable import Document
from meshwright.admin.pages import debug
from meshwright.admin.pages.calls import access_line, connectivity
from meshwright.admin.pages.calls import explain as explaining
from meshwright.admin.pages.calls.fields import QueryError
from meshwright.admin.pages.calls.sidecars import known_sidecars
from meshwright.admin.pages.mesh.certificates import certificates
from meshwright.admin.pages.mesh.published_resources import published
from meshwright.admin.pages.mesh.sources import sources
from meshwright.admin.pages.mesh.topology import topology
from meshwright.admin.pages.mesh.traffic import stat
from meshwright.admin.pages.proxies import proxy
from meshwright.admin.pages.proxies.streams import streams
from meshwright.admin.readers import MeshReading
from meshwright.traffic.statistics import RowKind


@dataclass(frozen=True, slots=True)
class Answers:
    """Handlers of the debug pages; each raises NothingToShow, or an HTTP error with a sentence."""

    reading: MeshReading
    clock: Callable[[], datetime]

    async def proxies(self, request: web.Request) -> Document:
        """Return every proxy with its state, or one proxy with the configuration."""
        if (wanted := request.query.get("proxy")) is not None:
            return await proxy.configured(self.reading, wanted, self.clock())
        return await proxy.listed(self.reading, self.clock())

    async def proxy_description(self, request: web.Request) -> Document:
        """Return the configuration of one proxy as the mesh describes it."""
        return await proxy.proxy_page(self.reading, request.query, self.clock())

    async def streams(self, request: web.Request) -> Document:
        """Return the open xDS streams, or one proxy's streams and last pushes."""
        if "proxy" in request.query:
            return proxy.pushed(self.reading, request.query)
        return streams(self.reading)

    async def difference(self, request: web.Request) -> Document:
        """Return the difference between two versions of a proxy's resource."""
        return await proxy.differing(self.reading, request.query)

    async def published(self, _request: web.Request) -> Document:
        """Return the versions of the resources published for each proxy."""
        return await published(self.reading)

    async def policies(self, request: web.Request) -> Document:
        """Return the mesh objects in use and all problems, or one object."""
        return await debug.policies(self.reading, request.query.get("object"))

    async def traffic(self, request: web.Request) -> Document:
        """Return the traffic statistics of the requested kind of rows."""
        query = dict(request.query)
        named = query.pop("of", RowKind.EDGES.value)
        if named not in tuple(RowKind):
            kinds = ", ".join(row_kind.value for row_kind in RowKind)
            raise web.HTTPBadRequest(reason=f"of is {named[:40]!r}: must be one of {kinds}")
        return await stat(self.reading, RowKind(named), query, self.clock())

    async def topology(self, request: web.Request) -> Document:
        """Return the graph of services and the traffic between them."""
        return await topology(self.reading, request.query, self.clock())

    async def access(self, request: web.Request) -> Document:
        """Return the allowed requests for each pair of calling identity and service port."""
        # In a thread, because the cost is the product of identities and services.
        return await asyncio.to_thread(debug.access, self.reading, request.query.get("source"))

    async def explain(self, request: web.Request) -> Document:
        """Return the reasons for allowing or refusing a request."""
        view = self.reading.view()
        if view is None:
            raise web.HTTPNotFound(
                reason="the server has not read its sources yet: try again in a few seconds"
            )
        if not request.query:
            return {"usage": explaining.USAGE}
        with _understood():
            question = access_line.question(view, request.query, request.query.getall("header", []))
            logged: Document = {"logged": dict(question.logged)}
            # Only the view's gaps at a gateway need the problems, for which a search may have to finish.
            problems = await self.reading.problems() if question.query.get("gateway") else ()
            found = explaining.by_policy(view, question.query, question.headers, problems)
            if found is not None:
                return found | logged
            asked = explaining.read_request(question.query, question.headers)
        explanation, names = await asyncio.to_thread(explaining.explained, view, asked)
        held = await asyncio.to_thread(
            explaining.compared_document, view, explanation, known_sidecars(self.reading, names)
        )
        return held | logged

    async def connectivity(self, request: web.Request) -> Document:
        """Return the state of every part on the path of a request."""
        headers = request.query.getall("header", [])
        with _understood():
            return await connectivity.connectivity(self.reading, request.query, headers, self.clock())

    async def certificates(self, _request: web.Request) -> Document:
        """Return the service certificates, the proxy certificates and the participation of proxies."""
        return await certificates(self.reading, self.clock())

    async def config(self, _request: web.Request) -> Document:
        """Return the MeshConfig and the server's settings."""
        return debug.config(self.reading)

    async def loop(self, _request: web.Request) -> Document:
        """Return the moments at which the event loop was blocked."""
        return debug.loop(self.reading)

    async def sources(self, _request: web.Request) -> Document:
        """Return the freshness and the object counts of each source of the mesh."""
        return sources(self.reading, self.clock())


@contextlib.contextmanager
def _understood() -> Iterator[None]:
    """Turn a QueryError in the block into an HTTP error 400 with the same message."""
    try:
        yield
    except QueryError as error:
        raise web.HTTPBadRequest(reason=str(error)) from error
