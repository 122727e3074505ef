"""Tests of an application's probes: parsing, selection, and execution against real servers."""

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
from tests.unit.agent.issued_credentials import write_server_certificate

HERE = "127.0.0.1"


def test_probes_are_read_in_the_form_of_kubernetes() -> None:
    """HTTP, HTTPS, TCP and gRPC probes are read with Kubernetes' defaults."""
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
def test_invalid_probe_is_refused(document: object, words: str) -> None:
    """The message names the probe or the field, and the accepted values."""
    with pytest.raises(ProbeConfigError, match=words):
        read_probes(document)


def test_probe_is_chosen_by_path_or_by_header() -> None:
    """The header may name only ports of the application, so that the agent gives no access to other ports."""
    known = Probes(HERE, {"/app-health/x": Probe(TcpProbe(1))}, frozenset({80}))
    assert chosen(known, "/app-health/x", None) == Probe(TcpProbe(1))
    assert chosen(known, "/other", None) == Outcome(404, "unknown probe /other")
    assert chosen(known, "/other", "80") == Probe(HttpProbe(80, "/other"))
    assert [chosen(known, "/", wrong) for wrong in ("15000", "", "x")] == [
        Outcome(400, f"istio-app-probe-port is {wrong!r}, which is not a port of the application")
        for wrong in ("15000", "", "x")
    ]


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """Yield a stack that stops the servers of a test."""
    async with AsyncExitStack() as stack:
        yield stack


async def serving(ends: AsyncExitStack, tls: ssl.SSLContext | None = None) -> int:
    """Start an application with good, bad, slow and redirecting pages; return the port."""

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
    runner = web.AppRunner(app, shutdown_timeout=0.01)  # 0 would mean no bound
    await runner.setup()
    ends.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, HERE, 0, ssl_context=tls).start()
    return int(runner.addresses[0][1])


async def test_http_probe_has_the_status_of_the_answer(ends: AsyncExitStack) -> None:
    """Redirects are handled as by a kubelet; a timeout and a refused connection are 503."""
    port = await serving(ends)
    paths = {"/ok": 200, "/to-ok": 200, "/away": 302, "/round": 503, "/bad": 500, "ok": 200}
    assert {path: (await carry_out(Probe(HttpProbe(port, path)), HERE)).status for path in paths} == paths
    slow = await carry_out(Probe(HttpProbe(port, "/slow"), 0.05), HERE)
    assert slow == Outcome(503, "timed out after 0.05 s")
    assert (await carry_out(Probe(HttpProbe(1)), HERE)).status == 503


async def test_https_probe_accepts_any_certificate(ends: AsyncExitStack, tmp_path: Path) -> None:
    """An untrusted certificate is accepted, as by a kubelet."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(write_server_certificate(tmp_path))
    port = await serving(ends, tls)
    assert (await carry_out(Probe(HttpProbe(port, "/ok", secure=True)), HERE)).status == 200
    assert (await carry_out(Probe(HttpProbe(port, "/ok")), HERE)).status != 200


async def test_tcp_probe_succeeds_with_a_connection(ends: AsyncExitStack) -> None:
    """A connection is enough; a refused one is 503."""
    port = await serving(ends)
    assert await carry_out(Probe(TcpProbe(port)), HERE) == Outcome(200, "connected")
    assert (await carry_out(Probe(TcpProbe(1)), HERE)).status == 503


async def test_grpc_probe_asks_the_standard_health_service(ends: AsyncExitStack) -> None:
    """The health of the server or of one service is asked; NOT_SERVING and NOT_FOUND are 503."""
    server = grpc.aio.server()
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port(f"{HERE}:0")
    await server.start()
    ends.push_async_callback(server.stop, 0)
    await servicer.set("down", health_pb2.HealthCheckResponse.NOT_SERVING)
    outcomes = [await carry_out(Probe(GrpcProbe(port, item), 5), HERE) for item in ("", "down", "none")]
    assert [outcome.status for outcome in outcomes] == [200, 503, 503]
    assert [outcome.words.partition(":")[0] for outcome in outcomes] == [
        "SERVING",
        "NOT_SERVING",
        "NOT_FOUND",
    ]


@pytest.mark.parametrize(("has_ipv6", "status"), [(True, 200), (False, 503)])
async def test_application_on_ipv6_only_is_probed_by_ipv6(
    has_ipv6: bool, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application on `::1` only is found if the machine has IPv6.

    Otherwise it is unhealthy, because no call reaches it.
    """
    monkeypatch.setattr("meshwright.agent.status.probes.has_ipv6", lambda: has_ipv6)
    async with AsyncExitStack() as ends:
        runner = web.AppRunner(web.Application())
        await runner.setup()
        ends.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "::1", 0).start()
        port = runner.addresses[0][1]
        assert (await carry_out(Probe(TcpProbe(port), 5), HERE)).status == status
        # The probe's status is that of the application, here 404.
        assert (await carry_out(Probe(HttpProbe(port), 5), HERE)).status == (404 if has_ipv6 else 503)
