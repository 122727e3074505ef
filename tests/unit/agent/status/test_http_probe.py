"""Tests of HTTP probes in the manner of a kubelet: redirects and headers.

The reference is pkg/probe/http of Kubernetes 1.34; the answers are those of a real server.
"""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from unittest.mock import Mock

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.typedefs import Handler

from meshwright.agent.status.http_probe import Caller
from meshwright.agent.status.probes import HttpProbe, Probe, Probes, carry_out
from meshwright.agent.status.server import ProxyControl, application

HERE = "127.0.0.1"
KUBELET = "kube-probe/1.34"


class Application:
    """A server with redirecting pages that records its requests."""

    def __init__(self) -> None:
        """Create an application without a port."""
        self.port = 0
        self.paths: list[str] = []
        self.further: dict[str, str | None] = {}
        self.headers: list[Mapping[str, str]] = []

    async def page(self, request: web.Request) -> web.Response:
        """Answer 200 at a few pages, a redirect at some, and 500 elsewhere."""
        self.paths.append(request.path_qs)
        self.headers.append(request.headers)
        here = f"http://{HERE}:{self.port}"
        to: dict[str, str | None] = {
            "/query": "/need?token=1",
            "/dir/relative": "next",
            "/dir/only-query": "?x=1",
            "/whole": f"{here}/dir/next",
            "/whole-and-sick": f"{here}/sick",
            "/no-scheme": f"//{HERE}:{self.port}/sick",
            "/pod": f"http://192.0.2.7:{self.port}/sick",
            "/away": "http://192.0.2.1/sick",
            "/mail": "mailto:somebody@example.com",
            "/other-scheme": f"ftp://{HERE}/",
            "/nonsense": "http://[::1/",
            "/nowhere": None,
            "/round": "/round",
            **self.further,
        }
        if request.path in to and "x" not in request.query:
            location = to[request.path]
            return web.Response(status=302, headers={} if location is None else {"Location": location})
        well = request.path_qs in {"/need?token=1", "/dir/next", "/dir/only-query?x=1", "/ok"}
        return web.Response(status=200 if well else 500)


@pytest.fixture
async def app() -> AsyncIterator[Application]:
    """Serve an application at a free port."""
    made = Application()
    server = web.Application()
    server.router.add_get("/{path:.*}", made.page)
    runner = web.AppRunner(server, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, HERE, 0).start()
    made.port = int(runner.addresses[0][1])
    yield made
    await runner.cleanup()


async def ask(app: Application, path: str, caller: Caller | None = None, *headers: tuple[str, str]) -> int:
    """Return the status of a probe of a path."""
    probe = Probe(HttpProbe(app.port, path, headers=headers), 5)
    return (await carry_out(probe, HERE, caller or Caller())).status


@pytest.mark.parametrize(
    ("path", "status", "then"),
    [
        ("/query", 200, ["/need?token=1"]),
        ("/dir/relative", 200, ["/dir/next"]),
        ("/dir/only-query", 200, ["/dir/only-query?x=1"]),
        ("/whole", 200, ["/dir/next"]),
        ("/whole-and-sick", 500, ["/sick"]),
        ("/no-scheme", 500, ["/sick"]),
        ("/pod", 500, ["/sick"]),
        ("/away", 302, []),
        ("/mail", 302, []),
        ("/nowhere", 302, []),
        ("/other-scheme", 503, []),
        ("/nonsense", 503, []),
        ("/round", 503, ["/round"] * 9),
    ],
)
async def test_redirects_are_followed_as_by_a_kubelet(
    app: Application, path: str, status: int, then: list[str]
) -> None:
    """Redirects within the host are followed up to nine times.

    Locations are resolved against their own URL (RFC 9110, 10.2.2). A redirect to another host, or without
    a location, is success. The pod's own address, by which a kubelet asks, is the same host.
    """
    assert await ask(app, path, Caller(host="192.0.2.7:15020")) == status
    assert app.paths == [path, *then]


@pytest.mark.parametrize("is_declared", [True, False])
async def test_redirect_is_followed_to_ports_of_the_application_only(
    app: Application, is_declared: bool
) -> None:
    """Redirects to ports without a probe of the application are not followed.

    Other programs listen on loopback, for example Envoy's admin interface, which a kubelet could not reach.
    """
    asked: list[str] = []

    async def page(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=500)

    async with _serving(page) as port:
        app.further["/admin"] = f"http://{HERE}:{port}/config_dump"
        probe, other = Probe(HttpProbe(app.port, "/admin"), 5), Probe(HttpProbe(port, "/other"))
        of_other = {"/app-health/b/livez": other} if is_declared else {}
        agent = application(
            Mock(spec=ProxyControl), Probes(HERE, {"/app-health/a/livez": probe, **of_other}), None
        )
        async with TestClient(TestServer(agent)) as kubelet:
            client_response = await kubelet.get("/app-health/a/livez")
    assert (client_response.status, asked) == ((500, ["/config_dump"]) if is_declared else (302, []))


@asynccontextmanager
async def _serving(page: Handler) -> AsyncIterator[int]:
    server = web.Application()
    server.router.add_get("/{path:.*}", page)
    runner = web.AppRunner(server, shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, HERE, 0).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def test_application_gets_the_kubelet_s_headers(app: Application) -> None:
    """The kubelet's User-Agent and Accept are sent, and no header that a kubelet does not send.

    After a redirect the User-Agent is sent again.
    """
    assert await ask(app, "/ok", Caller(user_agent=KUBELET)) == 200
    assert {name: value for name, value in app.headers[0].items() if name != "Host"} == {
        "User-Agent": KUBELET,
        "Accept": "*/*",
        "Connection": "close",
    }
    await ask(app, "/query", Caller(user_agent=KUBELET))
    assert app.headers[-1]["User-Agent"] == KUBELET  # also after a redirect


async def test_probe_does_not_load_the_cas_of_the_system(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe verifies no certificate, and to load all CAs takes longer than all else that it does."""
    loaded: list[object] = []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: loaded.append(_))
    assert (await ask(app, "/whole"), loaded) == (200, [])


async def test_headers_of_a_probe_override_the_defaults(app: Application) -> None:
    """A probe's headers replace the defaults in any case.

    An empty value removes one, and a name can occur twice.
    """
    by = Caller(user_agent=KUBELET)
    await ask(app, "/ok", by, ("user-agent", "mine/1"), ("accept", "text/html"), ("x", "1"), ("x", "2"))
    await ask(app, "/ok", by, ("User-Agent", ""), ("Accept", ""), ("Host", ""))
    await ask(app, "/whole", by, ("Host", "shop.example"))
    own, empty, named, led = app.headers
    assert (own["User-Agent"], own["Accept"]) == ("mine/1", "text/html")
    assert [value for name, value in own.items() if name == "x"] == ["1", "2"]
    assert not {"User-Agent", "Accept"} & set(empty)
    here = f"{HERE}:{app.port}"
    assert [item["Host"] for item in (empty, named, led)] == [here, "shop.example", here]


async def test_agent_forwards_probes_by_path_and_by_header(app: Application) -> None:
    """The agent forwards a probe's path, and a request with the port header together with its query."""
    known = Probes(HERE, {"/app-health/a/livez": Probe(HttpProbe(app.port, "/ok"))}, frozenset({app.port}))
    runner = web.AppRunner(application(Mock(spec=ProxyControl), known, None), shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, HERE, 0).start()
        agent = f"http://{HERE}:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(headers={"User-Agent": KUBELET}) as session:
            async with session.get(f"{agent}/app-health/a/livez") as response:
                assert response.status == 200
            port = {"istio-app-probe-port": str(app.port)}
            async with session.get(f"{agent}/need?token=1", headers=port) as response:
                assert response.status == 200
    finally:
        await runner.cleanup()
    assert app.paths == ["/ok", "/need?token=1"]
    assert [header["User-Agent"] for header in app.headers] == [KUBELET] * 2
