"""A program's own Unix socket: what it counted, and requests made from its place on demand."""

import asyncio
from pathlib import Path

import aiohttp
from aiohttp import web

from demo.apps import probe
from demo.apps.counters import Counters


def application(counters: Counters) -> web.Application:
    """Return the web application behind the socket: GET /status and POST /probe."""

    async def status(_request: web.Request) -> web.Response:
        return web.json_response(text=counters.to_json())

    async def ask(request: web.Request) -> web.Response:
        found = await probe.run(probe.Probe.from_json(await request.text()))
        return web.json_response(text=found.to_json())

    routes = web.Application()
    routes.router.add_get("/status", status)
    routes.router.add_post("/probe", ask)
    return routes


class AppClient:
    """The other end of a program's socket."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def status(self) -> Counters:
        """Return what the program has counted; raise ClientError or OSError if it does not answer."""
        return Counters.from_json(await self._ask("GET", "/status"))

    async def probe(self, request: probe.Probe) -> probe.Outcomes:
        """Have the program make the requests; return their outcomes."""
        return probe.Outcomes.from_json(await self._ask("POST", "/probe", request.to_json()))

    async def _ask(self, method: str, path: str, body: str | None = None) -> str:
        # A network namespace has no bearing on a Unix socket, so this works into every place alike.
        connector = aiohttp.UnixConnector(str(self._socket))
        async with (
            asyncio.timeout(120),
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, f"http://app{path}", data=body) as response,
        ):
            response.raise_for_status()
            return await response.text()
