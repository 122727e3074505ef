"""Health and metrics in a thread with another event loop, so probes work while the main loop is blocked."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from meshwright.admin.http.servers import serving
from meshwright.admin.metrics.registry import CONTENT_TYPE, Metrics

_STOP_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Health:
    """Sources of the probes. Every function must be safe to call from another thread.

    `waiting` returns the conditions for readiness still to be met; empty means ready. `remarks` returns
    further problems. They do not make the server unready, because proxies are better off with this server
    than without one.
    """

    alive: Callable[[], bool]
    waiting: Callable[[], tuple[str, ...]]
    remarks: Callable[[], tuple[str, ...]] = tuple


def application(health: Health, metrics: Metrics, version: dict[str, str]) -> web.Application:
    """Build the application: `/metrics`, `/healthz/live`, `/healthz/ready`, `/version`."""

    async def live(_request: web.Request) -> web.Response:
        if health.alive():
            return web.Response(text="alive\n")
        return web.Response(status=503, text="the event loop is blocked\n")

    async def ready(_request: web.Request) -> web.Response:
        if not health.alive():
            return web.Response(status=503, text="the event loop is blocked\n")
        if waiting := health.waiting():
            return web.Response(status=503, text="waiting for: " + ", ".join(waiting) + "\n")
        return web.Response(text="".join(("ready\n", *(f"but: {remark}\n" for remark in health.remarks()))))

    async def measured(_request: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def which(_request: web.Request) -> web.Response:
        return web.json_response(version)

    app = web.Application()
    app.add_routes(
        [
            web.get("/healthz/live", live),
            web.get("/healthz/ready", ready),
            web.get("/metrics", measured),
            web.get("/version", which),
        ]
    )
    return app


class HttpThread:
    """Thread serving an application on a listening socket."""

    def __init__(self, build: Callable[[], web.Application], listening: socket.socket) -> None:
        self._build = build
        self._socket = listening
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._error: BaseException | None = None
        # A daemon thread, so that a stuck request cannot keep the process alive.
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    @property
    def port(self) -> int:
        """Return the port of the socket."""
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Start serving. Return when requests are answered; raise the error of a failed start."""
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop serving and join the thread. May be called more than once."""
        if self._loop is None:
            self._socket.close()
            return
        with contextlib.suppress(RuntimeError):  # the loop may be closed already
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - start() raises it in the calling thread
            self._error = error
        finally:
            self._started.set()
            self._socket.close()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with serving(self._build(), self._socket):
            self._started.set()
            await self._stop.wait()
