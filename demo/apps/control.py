"""Control socket of a program: its counters, and test requests from the network of the program."""

import asyncio
from pathlib import Path
from typing import Protocol

import aiohttp
from aiohttp import web

from demo.apps import probe
from demo.apps.counters import Counters
from demo.apps.load import Load, LoadRequest, Totals


def application(counters: Counters) -> web.Application:
    """Return the web application of the socket: GET /status, POST /probe, and POST, GET and DELETE /load."""
    loads: list[Load] = []

    async def status(_request: web.Request) -> web.Response:
        return web.json_response(text=counters.to_json())

    async def ask(request: web.Request) -> web.Response:
        outcomes = await probe.run(probe.Probe.from_json(await request.text()))
        return web.json_response(text=outcomes.to_json())

    async def load(request: web.Request) -> web.Response:
        loads.append(Load(LoadRequest.from_json(await request.text())))
        return web.Response()

    async def so_far(_request: web.Request) -> web.Response:
        return web.json_response(text=loads[-1].totals.to_json())

    async def totals(_request: web.Request) -> web.Response:
        # Repeated DELETE requests have the same answer, because a client that lost the answer asks again.
        return web.json_response(text=(await loads[-1].stop()).to_json())

    async def end(_application: web.Application) -> None:
        await asyncio.gather(*(item.stop() for item in loads))

    routes = web.Application()
    routes.on_cleanup.append(end)
    routes.router.add_post("/load", load)
    routes.router.add_get("/load", so_far)
    routes.router.add_delete("/load", totals)
    routes.router.add_get("/status", status)
    routes.router.add_post("/probe", ask)
    return routes


class ControlCall(Protocol):
    """Transport of queries to a program's control socket; raises ClientError or OSError after a failure."""

    async def __call__(self, method: str, path: str, body: str | None = None) -> str:
        """Send a query to the control socket, and return the body of the response."""


class AppClient:
    """Client of the control socket of a demo program."""

    def __init__(self, ask: ControlCall) -> None:
        self._ask = ask

    async def status(self) -> Counters:
        """Return the program's counters; raise ClientError or OSError if the program does not answer."""
        return Counters.from_json(await self._ask("GET", "/status"))

    async def probe(self, request: probe.Probe) -> probe.Outcomes:
        """Let the program make the requests of a probe, and return their outcomes."""
        return probe.Outcomes.from_json(await self._ask("POST", "/probe", request.to_json()))

    async def load(self, wanted: LoadRequest) -> None:
        """Let the program start a load of requests at a steady rate."""
        await self._ask("POST", "/load", wanted.to_json())

    async def totals(self) -> Totals:
        """Return the totals of the running load so far."""
        return Totals.from_json(await self._ask("GET", "/load"))

    async def unload(self) -> Totals:
        """Let the program stop the load, and return the load's totals."""
        return Totals.from_json(await self._ask("DELETE", "/load"))


class Socket:
    """Transport to a Unix socket on this machine, also of a program in another network namespace."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __call__(self, method: str, path: str, body: str | None = None) -> str:
        """Send a query to the control socket, and return the body of the response."""
        # Unix sockets are found by their path in any network namespace.
        connector = aiohttp.UnixConnector(str(self._path))
        async with (
            asyncio.timeout(120),
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, f"http://app{path}", data=body) as response,
        ):
            response.raise_for_status()
            return await response.text()
