"""A proxy between a client and the API server that returns wrong answers on demand."""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import web
from yarl import URL

from tools.real_parts.cluster import RunningCluster

_LENGTH: Final = 64 * 1024
_ADDED: Final = ("Content-Type", "User-Agent", "Accept", "Accept-Encoding")
_HOP_BY_HOP: Final = ("Transfer-Encoding", "Content-Length", "Connection", "Host")

Spoil = Callable[[web.Request], "web.Response | float | None"]
"""What becomes of a request: an answer of its own, a pause of seconds before it is passed on, or nothing."""


def forbidding(*plurals: str) -> Spoil:
    """Answer 403 for these resources, in the API server's form."""

    def spoil(request: web.Request) -> web.Response | None:
        plural = request.path.rpartition("/")[2]
        if plural not in plurals:
            return None
        text = f'{plural} is forbidden: User "x" cannot list resource "{plural}"'
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": "Forbidden",
            "code": 403,
        }
        return web.json_response({**status, "message": text}, status=403)

    return spoil


def nonsense(request: web.Request) -> web.Response:
    """Answer with an HTML page, like an intermediate login proxy."""
    del request
    return web.Response(text="<html><body>Please log in</body></html>", content_type="text/html")


def half(request: web.Request) -> web.Response:
    """Answer with truncated JSON."""
    del request
    return web.Response(text='{"kind": "List", "items": [{"metada', content_type="application/json")


def failing(request: web.Request) -> web.Response:
    """Answer 500 with a text that is no Status."""
    del request
    return web.Response(status=500, text="etcdserver: leader changed")


def without_streaming_lists(request: web.Request) -> web.Response | None:
    """Refuse a watch with initial events, like an API server before 1.32."""
    if "sendInitialEvents" not in request.query:
        return None
    text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}
    return web.json_response({**status, "message": text}, status=422)


def slow(seconds: float) -> Spoil:
    """Forward a request after a delay."""
    return lambda _: seconds


@dataclass
class Spoiling:
    """A server in front of the API server; `spoil` may be replaced at any time, and requests are counted.

    `after` is called when the API server has answered a request; if the result is true, the answer is lost.
    """

    port: int
    spoil: Spoil | None = None
    after: Callable[[web.Request], bool] = lambda _: False
    asked: Counter[str] = field(default_factory=Counter)
    _open: set[asyncio.Task[object] | None] = field(default_factory=set)

    @property
    def server(self) -> str:
        """Return the server's URL."""
        return f"https://127.0.0.1:{self.port}"

    def turn(self, spoil: Spoil | None) -> None:
        """Use another fault from now on, and end all open requests."""
        self.spoil = spoil
        for task in self._open:
            if task is not None:
                task.cancel()

    async def handle(
        self, request: web.Request, upstream: aiohttp.ClientSession, there: str
    ) -> web.StreamResponse:
        """Answer a request or forward it."""
        self.asked[request.path] += 1
        spoilt = None if self.spoil is None else self.spoil(request)
        if isinstance(spoilt, web.Response):
            return spoilt
        self._open.add(asyncio.current_task())
        try:
            await asyncio.sleep(spoilt or 0)
            return await _passed_on(request, upstream, there, self.after)
        finally:
            self._open.discard(asyncio.current_task())


async def _passed_on(
    request: web.Request, upstream: aiohttp.ClientSession, there: str, after: Callable[[web.Request], bool]
) -> web.StreamResponse:
    headers = _without_hops(request.headers)
    body = await request.read() or None
    url = URL(there + request.raw_path, encoded=True)
    async with upstream.request(request.method, url, headers=headers, data=body) as came:
        if after(request):
            return web.Response(status=503)
        answer = web.StreamResponse(status=came.status, headers=_without_hops(came.headers))
        try:
            await answer.prepare(request)
            async for piece in came.content.iter_any():
                await answer.write(piece)
            await answer.write_eof()
        finally:
            # Open requests are aborted, because an orderly end of TLS would not be waited for.
            if came.connection is not None and came.connection.transport is not None:
                came.connection.transport.abort()
        return answer


def _without_hops(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.title() not in _HOP_BY_HOP}


@asynccontextmanager
async def spoiling(cluster: RunningCluster, port: int = 0, certificate: str = "") -> AsyncIterator[Spoiling]:
    """Serve in front of a cluster's API with the same certificate.

    Clients use a token, or all of them act with the client certificate of this name.
    """
    keys = cluster.place.keys
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(keys / "server.crt", keys / "server.key")
    trusted = ssl.create_default_context(cafile=str(keys / "ca.crt"))
    if certificate:
        trusted.load_cert_chain(keys / f"{certificate}.crt", keys / f"{certificate}.key")
    connector = aiohttp.TCPConnector(ssl=trusted, limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False, skip_auto_headers=_ADDED
    ) as upstream:
        made = Spoiling(port)
        app = web.Application(client_max_size=_LENGTH**2)

        async def handle(request: web.Request) -> web.StreamResponse:
            return await made.handle(request, upstream, cluster.server)

        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=shown)
            await site.start()
            made.port = int(runner.addresses[0][1])
            yield made
        finally:
            await runner.cleanup()


def by_way_of(kubeconfig: Path, there: str, made: Path) -> Path:
    """Write a copy of a kubeconfig with another server; return its path."""
    config = json.loads(kubeconfig.read_text("utf-8"))
    for cluster in config["clusters"]:
        cluster["cluster"]["server"] = there
    made.write_text(json.dumps(config), "utf-8")
    return made
