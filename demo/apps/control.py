"""A program's own Unix socket: what it counted, and requests made from its place on demand, or steadily."""

import asyncio
from pathlib import Path
from typing import Protocol

import aiohttp
from aiohttp import web

from demo.apps import probe
from demo.apps.counters import Counters
from demo.apps.load import Load, LoadRequest, Totals


def application(counters: Counters) -> web.Application:
    """Return the web application behind the socket: GET /status, POST /probe, POST, GET and DELETE /load."""
    loads: list[Load] = []

    async def status(_request: web.Request) -> web.Response:
        return web.json_response(text=counters.to_json())

    async def ask(request: web.Request) -> web.Response:
        found = await probe.run(probe.Probe.from_json(await request.text()))
        return web.json_response(text=found.to_json())

    async def load(request: web.Request) -> web.Response:
        loads.append(Load(LoadRequest.from_json(await request.text())))
        return web.Response()

    async def so_far(_request: web.Request) -> web.Response:
        return web.json_response(text=loads[-1].totals.to_json())

    async def totals(_request: web.Request) -> web.Response:
        # Asked again, the same: whoever lost the answer asks again.
        return web.json_response(text=(await loads[-1].stop()).to_json())

    async def end(_application: web.Application) -> None:
        await asyncio.gather(*(each.stop() for each in loads))

    routes = web.Application()
    routes.on_cleanup.append(end)
    routes.router.add_post("/load", load)
    routes.router.add_get("/load", so_far)
    routes.router.add_delete("/load", totals)
    routes.router.add_get("/status", status)
    routes.router.add_post("/probe", ask)
    return routes


class ControlCall(Protocol):
    """Leads a question to a program's socket: method, path and body; ClientError or OSError if it cannot."""

    async def __call__(self, method: str, path: str, body: str | None = None) -> str:
        """Return the answer's body."""


class AppClient:
    """The other end of a program's socket."""

    def __init__(self, ask: ControlCall) -> None:
        self._ask = ask

    async def status(self) -> Counters:
        """Return what the program has counted; raise ClientError or OSError if it does not answer."""
        return Counters.from_json(await self._ask("GET", "/status"))

    async def probe(self, request: probe.Probe) -> probe.Outcomes:
        """Have the program make the requests; return their outcomes."""
        return probe.Outcomes.from_json(await self._ask("POST", "/probe", request.to_json()))

    async def load(self, wanted: LoadRequest) -> None:
        """Have the program begin to send requests."""
        await self._ask("POST", "/load", wanted.to_json())

    async def totals(self) -> Totals:
        """Return what has become of them so far."""
        return Totals.from_json(await self._ask("GET", "/load"))

    async def unload(self) -> Totals:
        """Have the program stop sending; return what became of all."""
        return Totals.from_json(await self._ask("DELETE", "/load"))


class Socket:
    """A program's socket on this machine, in whatever network namespace that program is."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __call__(self, method: str, path: str, body: str | None = None) -> str:
        """Ask."""
        # A network namespace has no bearing on a Unix socket, so this works into every place alike.
        connector = aiohttp.UnixConnector(str(self._path))
        async with (
            asyncio.timeout(120),
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, f"http://app{path}", data=body) as response,
        ):
            response.raise_for_status()
            return await response.text()
