"""Probes of an application: how they are described, chosen and carried out against real servers."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc.aio
import pytest
from aiohttp import web
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from meshwright.agent.status.probes import (
    GrpcProbe,
    HttpProbe,
    Outcome,
    Probe,
    ProbeConfigError,
    Probes,
    TcpProbe,
    carry_out,
    chosen,
    read_probes,
)
from tests.unit.agent.credentials_of import write_server_certificate

HERE = "127.0.0.1"


def test_probes_are_read_as_kubernetes_has_them() -> None:
    """All four kinds; defaults are Kubernetes'."""
    assert read_probes(
        {
            "/app-health/web/readyz": {
                "httpGet": {
                    "path": "/ok",
                    "port": 80,
                    "scheme": "HTTPS",
                    "httpHeaders": [{"name": "a", "value": "b"}],
                },
                "timeoutSeconds": 3,
            },
            "/app-health/web/livez": {"httpGet": {"port": 81}},
            "/app-health/db/livez": {"tcpSocket": {"port": 5432}},
            "/app-health/api/livez": {"grpc": {"port": 9000, "service": "x"}},
        }
    ) == {
        "/app-health/web/readyz": Probe(HttpProbe(80, "/ok", secure=True, headers=(("a", "b"),)), 3.0),
        "/app-health/web/livez": Probe(HttpProbe(81)),
        "/app-health/db/livez": Probe(TcpProbe(5432)),
        "/app-health/api/livez": Probe(GrpcProbe(9000, "x")),
    }


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "probes must be an object with paths as keys"),
        ({"/x": {}}, "must begin with /app-health/"),
        ({"/app-health/x": {"exec": {}}}, ": must have one of httpGet, tcpSocket and grpc"),
        ({"/app-health/x": {"tcpSocket": {"port": "http"}}}, "port is 'http'"),
        ({"/app-health/x": {"tcpSocket": {"port": 1}, "timeoutSeconds": 0}}, "timeoutSeconds is 0"),
    ],
)
def test_what_is_no_probe_is_refused(document: object, words: str) -> None:
    """The message names the probe and what would be right."""
    with pytest.raises(ProbeConfigError, match=words):
        read_probes(document)


def test_a_request_chooses_by_path_or_by_header() -> None:
    """The header leads only to ports of the application: the agent is no way into other ones."""
    known = Probes(HERE, {"/app-health/x": Probe(TcpProbe(1))}, frozenset({80}))
    assert chosen(known, "/app-health/x", None) == Probe(TcpProbe(1))
    assert chosen(known, "/other", None) == Outcome(404, "there is no probe /other")
    assert chosen(known, "/other", "80") == Probe(HttpProbe(80, "/other"))
    assert [chosen(known, "/", wrong) for wrong in ("15000", "", "x")] == [
        Outcome(400, f"istio-app-probe-port is {wrong!r}, which is not a port of the application")
        for wrong in ("15000", "", "x")
    ]


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """End what a test started."""
    async with AsyncExitStack() as stack:
        yield stack


async def serving(ends: AsyncExitStack, tls: ssl.SSLContext | None = None) -> int:
    """Start an application with good, bad, slow and redirecting pages."""

    async def page(request: web.Request) -> web.Response:
        match request.path:
            case "/ok":
                return web.Response(text=request.headers.get("x", ""))
            case "/to-ok":
                return web.Response(status=302, headers={"Location": "/ok"})
            case "/away":
                return web.Response(status=302, headers={"Location": "http://192.0.2.1/"})
            case "/round":
                return web.Response(status=302, headers={"Location": "/round"})
            case "/slow":
                await asyncio.sleep(5)
            case _:
                pass
        return web.Response(status=500)

    app = web.Application()
    app.router.add_get("/{path:.*}", page)
    runner = web.AppRunner(app, shutdown_timeout=0.01)  # 0 would be no bound at all
    await runner.setup()
    ends.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, HERE, 0, ssl_context=tls).start()
    return int(runner.addresses[0][1])


async def test_http(ends: AsyncExitStack) -> None:
    """Status as it comes; redirects as a kubelet takes them; slowness and absence are failures."""
    port = await serving(ends)
    paths = {"/ok": 200, "/to-ok": 200, "/away": 302, "/round": 503, "/bad": 500, "ok": 200}
    assert {path: (await carry_out(Probe(HttpProbe(port, path)), HERE)).status for path in paths} == paths
    slow = await carry_out(Probe(HttpProbe(port, "/slow"), 0.05), HERE)
    assert slow == Outcome(503, "no answer in 0.05 s")
    assert (await carry_out(Probe(HttpProbe(1)), HERE)).status == 503


async def test_https_without_asking_who_it_is(ends: AsyncExitStack, tmp_path: Path) -> None:
    """A certificate that nobody trusts is good enough, as for a kubelet."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(write_server_certificate(tmp_path))
    port = await serving(ends, tls)
    assert (await carry_out(Probe(HttpProbe(port, "/ok", secure=True)), HERE)).status == 200
    assert (await carry_out(Probe(HttpProbe(port, "/ok")), HERE)).status != 200


async def test_tcp(ends: AsyncExitStack) -> None:
    """A connection is enough."""
    port = await serving(ends)
    assert await carry_out(Probe(TcpProbe(port)), HERE) == Outcome(200, "connected")
    assert (await carry_out(Probe(TcpProbe(1)), HERE)).status == 503


async def test_grpc(ends: AsyncExitStack) -> None:
    """The standard health service, of the server or of one service."""
    server = grpc.aio.server()
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port(f"{HERE}:0")
    await server.start()
    ends.push_async_callback(server.stop, 0)
    await servicer.set("down", health_pb2.HealthCheckResponse.NOT_SERVING)
    found = [await carry_out(Probe(GrpcProbe(port, each), 5), HERE) for each in ("", "down", "none")]
    assert [each.status for each in found] == [200, 503, 503]
    assert [each.words.partition(":")[0] for each in found] == ["SERVING", "NOT_SERVING", "NOT_FOUND"]


@pytest.mark.parametrize(("has_ipv6", "status"), [(True, 200), (False, 503)])
async def test_an_application_that_listens_for_ipv6_alone_is_found_there(
    has_ipv6: bool, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its sidecar finds it; where no call comes by IPv6 it is not well, for nobody reaches it."""
    monkeypatch.setattr("meshwright.agent.status.probes.has_ipv6", lambda: has_ipv6)
    async with AsyncExitStack() as ends:
        runner = web.AppRunner(web.Application())
        await runner.setup()
        ends.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "::1", 0).start()
        port = runner.addresses[0][1]
        assert (await carry_out(Probe(TcpProbe(port), 5), HERE)).status == status
        # What the application says there is its answer, here that there is no such page.
        assert (await carry_out(Probe(HttpProbe(port), 5), HERE)).status == (404 if has_ipv6 else 503)
