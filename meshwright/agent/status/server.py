"""The agent's HTTP server for kubelets, Prometheus and shutdown hooks. A thin edge."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Protocol

from aiohttp import web

from meshwright.agent.status import probes, scraping
from meshwright.agent.status.application_metrics import ApplicationMetrics
from meshwright.agent.status.http_probe import Caller
from meshwright.agent.status.probes import Probes
from meshwright.mesh.listening_sockets import plain
from meshwright.sidecars.layout import DRAIN_PATH, LIVE_PATH, METRICS_PATH, READY_PATH, STATUS_PATH

_WHOLE_PATH = "/stats/prometheus"  # Envoy's own, and all of it


class ProxyControl(Protocol):
    """The proxy as seen by the HTTP server: state, metrics, drain, and end."""

    async def not_ready(self) -> tuple[str, ...]:
        """Return the reasons for which the proxy is not ready; empty for a ready proxy."""

    def remark(self) -> str:
        """Return a warning that leaves the proxy ready, such as a lost control plane; "" without one."""

    async def status(self) -> Mapping[str, object]:
        """Return the full state of the proxy, as JSON values."""

    def not_alive(self) -> str:
        """Return why the agent does not work; empty for a working agent."""

    async def proxy_metrics(self, whole: bool) -> str:
        """Return the proxy's Prometheus metrics; empty if Envoy does not answer.

        With `whole` all of Envoy's metrics are included.
        """

    def own_metrics(self) -> str:
        """Return the agent's own Prometheus metrics."""

    async def drain(self) -> None:
        """Begin to discourage calls to the workload, and continue to serve."""

    def quit(self) -> None:
        """Stop the agent and Envoy now, without draining connections."""


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Pages = Callable[[web.Application, Callable[[_Handler], _Handler]], None]
"""Adds pages to an application, each wrapped by the given guard."""


def no_pages(_app: web.Application, _guarded: Callable[[_Handler], _Handler]) -> None:
    """Add no further pages to the HTTP server."""


def application(
    proxied: ProxyControl, known: Probes, metrics_url: str | None, pages: Pages = no_pages
) -> web.Application:
    """Return the server's application; `metrics_url` is the page of the workload's metrics, or None.

    `pages` adds further pages for local callers.
    """
    metrics = _metrics(proxied, ApplicationMetrics(metrics_url))

    async def ready(_request: web.Request) -> web.Response:
        return _verdict(await proxied.not_ready(), proxied.remark())

    async def status(_request: web.Request) -> web.Response:
        return web.json_response(await proxied.status())

    async def live(_request: web.Request) -> web.Response:
        words = proxied.not_alive()
        return _verdict((words,) if words else ())

    async def probe(request: web.Request) -> web.Response:
        port = request.headers.get(probes.PORT_HEADER)
        result = probes.chosen(known, request.path if port is None else request.path_qs, port)
        if isinstance(result, probes.Probe):
            caller = Caller(request.headers.get("User-Agent"), request.host)
            result = await probes.carry_out(result, known.address, caller, known.reachable)
        return web.Response(status=result.status, text=f"{result.words}\n")

    async def drain(_request: web.Request) -> web.Response:
        await proxied.drain()
        return web.Response(text="draining\n")

    async def quit_now(_request: web.Request) -> web.Response:
        proxied.quit()
        return web.Response(text="ending\n")

    app = web.Application()
    app.router.add_get(READY_PATH, ready)
    app.router.add_get(LIVE_PATH, live)
    app.router.add_get(STATUS_PATH, from_here(status))
    app.router.add_get(_WHOLE_PATH, metrics)
    app.router.add_get(METRICS_PATH, metrics)
    pages(app, from_here)
    app.router.add_post(DRAIN_PATH, from_here(drain))
    app.router.add_post("/quitquitquit", from_here(quit_now))
    app.router.add_get("/{path:.*}", probe)
    return app


def _metrics(proxied: ProxyControl, application_metrics: ApplicationMetrics) -> _Handler:
    """Return the handler of the metrics pages: the agent's and Envoy's metrics, then the application's."""

    async def metrics(request: web.Request) -> web.Response:
        whole = request.path == _WHOLE_PATH
        of_proxy, of_application = await asyncio.gather(
            proxied.proxy_metrics(whole), application_metrics.page()
        )
        own = (proxied.own_metrics(), application_metrics.own_metrics(), of_proxy)
        text = await asyncio.to_thread(scraping.merged, own)
        body = text.encode() + of_application
        return web.Response(body=body, headers={"Content-Type": scraping.CONTENT_TYPE})

    return metrics


def from_here(handler: _Handler) -> _Handler:
    """Restrict a handler to local callers, by a loopback address and a loopback name (`localhost`).

    The check of `Host` blocks a page in a local browser whose DNS name was pointed here (DNS rebinding). The
    check of `Origin`, which browsers send with every POST of a page (Fetch 3.2), blocks a page with our
    address.
    """

    async def guarded(request: web.Request) -> web.StreamResponse:
        host = request.host.rpartition(":")[0] or request.host
        here = _is_loopback(request.remote or "") and (host == "localhost" or _is_loopback(host))
        if not here or "Origin" in request.headers:
            return web.Response(status=403, text="only from this machine, by its loopback address\n")
        return await handler(request)

    return guarded


def _is_loopback(text: str) -> bool:
    try:
        return ip_address(plain(text.strip("[]"))).is_loopback
    except ValueError:
        return False


def _verdict(reasons: tuple[str, ...], remark: str = "") -> web.Response:
    """Return 503 with the reasons, after the remark, which may be their cause; 200 without reasons."""
    if reasons:
        lines = (remark, *reasons) if remark else reasons
        return web.Response(status=503, text="".join(f"{item}\n" for item in lines))
    return web.Response(text=f"ok\nbut: {remark}\n" if remark else "ok\n")
