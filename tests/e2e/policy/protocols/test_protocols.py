"""Tests of the protocols of ports: server-first, gRPC, WebSocket, TCP."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import grpc
import grpc.aio
import pytest

from tests.e2e.policy.applications import DATABASE, ECHO, GREETER, GRPC, GRPC_IN_TLS, start_grpc
from tests.e2e.policy.calls import CLOSED
from tests.e2e.policy.policies import ALL, EVERYTHING, http, path, ports, routes, target, tcp
from tests.e2e.policy.running_mesh import PolicyMesh
from tests.e2e.policy.topology import WORKLOADS
from tests.unit.agent.issued_credentials import write_server_certificate

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="session"),
]

GREETED = "v1 speaks first\nv1: hello\n"


@pytest.mark.parametrize("port", [GREETER, DATABASE], ids=["declared", "by-well-known-number"])
async def test_server_first_greeting_arrives_before_the_client_sends(mesh: PolicyMesh, port: int) -> None:
    """The greeting passes if the port is permitted; otherwise the connection is closed."""
    await mesh.enforce(ports("p", port), target("t", "shop/v1", ("shop/client",), tcp("p")))
    assert await mesh.hello("client", "v1", port, first=True) == GREETED
    await mesh.enforce(ports("p", ECHO), target("t", "shop/v1", ("shop/client",), tcp("p")))
    assert await mesh.hello("client", "v1", port, first=True) == CLOSED


async def test_grpc_unary_call_passes_both_sidecars_only_with_a_policy(mesh: PolicyMesh) -> None:
    """With a policy the call is answered; without one it is UNAVAILABLE."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    async with channel(mesh, "client") as calling:
        assert await calling.unary_unary("/test.Echo/Say")(b"hello") == b"v1: hello"
    await mesh.enforce()
    async with channel(mesh, "client") as calling:
        assert await refusal(calling, "Say") is grpc.StatusCode.UNAVAILABLE


async def test_grpc_streams_pass_in_both_directions(mesh: PolicyMesh) -> None:
    """Responses arrive while the other side still sends."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    async with channel(mesh, "client") as calling:
        assert [item async for item in calling.unary_stream("/test.Echo/Count")(b"3")] == [b"0", b"1", b"2"]
        chat = calling.stream_stream("/test.Echo/Chat")()
        for word in (b"one", b"two"):
            await chat.write(word)
            assert await chat.read() == b"heard " + word
        await chat.done_writing()
        assert await chat.read() is grpc.aio.EOF


async def test_grpc_methods_are_permitted_one_by_one(mesh: PolicyMesh) -> None:
    """A method is a path, so one method can be permitted and the others of its service denied."""
    group = routes("say", path("/test.Echo/Say", "POST"))
    await mesh.enforce(group, target("t", "shop/v1", ("shop/client",), http("say")))
    async with channel(mesh, "client") as calling:
        assert await calling.unary_unary("/test.Echo/Say")(b"hello") == b"v1: hello"
        assert await refusal(calling, "Count") is grpc.StatusCode.PERMISSION_DENIED
        assert await refusal(calling, "Other") is grpc.StatusCode.PERMISSION_DENIED


async def test_grpc_over_application_tls_is_proxied_as_tcp(mesh: PolicyMesh, tmp_path: Path) -> None:
    """The sidecars forward bytes, so the client verifies the application's own certificate."""
    pem = write_server_certificate(tmp_path).read_bytes()
    shown = grpc.ssl_server_credentials([(pem, pem)])
    async with AsyncExitStack() as ends:
        await start_grpc("v1", WORKLOADS["v1"].application, ends, shown)
        await mesh.enforce(ports("p", GRPC_IN_TLS), target("t", "shop/v1", ("shop/client",), tcp("p")))
        address, port = mesh.place("client", "v1", GRPC_IN_TLS)
        roots = grpc.ssl_channel_credentials((tmp_path / "ca" / "ca.pem").read_bytes())
        named = (("grpc.ssl_target_name_override", "ads.cluster.local"),)
        async with grpc.aio.secure_channel(f"{address}:{port}", roots, named) as calling:
            assert await calling.unary_unary("/test.Echo/Say")(b"hello") == b"v1: hello"
        await mesh.enforce(ports("p", ECHO), target("t", "shop/v1", ("shop/client",), tcp("p")))
        async with grpc.aio.secure_channel(f"{address}:{port}", roots, named) as calling:
            assert await refusal(calling, "Say") is grpc.StatusCode.UNAVAILABLE


async def test_websocket_upgrade_is_permitted_by_path(mesh: PolicyMesh) -> None:
    """A permitted upgrade passes both sidecars, and another one gets 403."""
    await mesh.enforce(routes("ws", path("/a/ws")), target("t", "shop/v1", ("shop/client",), http("ws")))
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(f"{mesh.url('client', 'v1')}/a/ws") as socket:
            await socket.send_str("one")
            assert await socket.receive_str() == "heard one"
            await socket.send_str("two")
            assert await socket.receive_str() == "heard two"
        with pytest.raises(aiohttp.WSServerHandshakeError) as error:
            await session.ws_connect(f"{mesh.url('client', 'v1')}/b/ws")
        assert error.value.status == 403


async def test_tcp_half_close_delivers_the_remaining_data(mesh: PolicyMesh) -> None:
    """An end of file is forwarded, and data that the server sends after it still arrives."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    reader, writer = await asyncio.open_connection(*mesh.place("client", "v1", ECHO))
    writer.write(b"last words\n")
    writer.write_eof()
    async with asyncio.timeout(60):
        assert await reader.read() == b"v1: last words\n"
    writer.close()


def channel(mesh: PolicyMesh, caller: str) -> grpc.aio.Channel:
    """Return a channel to the gRPC port of v1 at the caller's sidecar."""
    address, port = mesh.place(caller, "v1", GRPC)
    return grpc.aio.insecure_channel(f"{address}:{port}")


async def refusal(calling: grpc.aio.Channel, method: str) -> grpc.StatusCode:
    """Return the status code of a failed call."""
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await calling.unary_unary(f"/test.Echo/{method}")(b"1")
    return error.value.code()


OFFERED = ("TLS/1.2", "h2c, TLS/1.2", "made-up-protocol", "SPDY/3.1")


@pytest.mark.parametrize("offer", OFFERED)
async def test_unsupported_upgrade_offer_is_ignored(mesh: PolicyMesh, offer: str) -> None:
    """RFC 9110, section 7.8, requires this. Apache HttpClient 5.4 offers TLS/1.2 with every request."""
    await mesh.enforce(*EVERYTHING, target("t", "shop/v1", ("shop/client",), *ALL))
    async with aiohttp.ClientSession() as session:
        headers = {"Connection": "Upgrade", "Upgrade": offer}
        async with session.get(f"{mesh.url('client', 'v1')}/a", headers=headers) as answer:
            assert answer.status == 200


async def test_expect_continue_is_answered_by_the_application(mesh: PolicyMesh) -> None:
    """The application asks for the body, and a denied request is refused without 100 Continue."""
    await mesh.enforce(routes("up", path("/a", "POST")), target("t", "shop/v1", ("shop/client",), http("up")))
    assert await expecting(mesh, "/a") == ["HTTP/1.1 100 Continue", "HTTP/1.1 200 OK"]
    assert await expecting(mesh, "/b") == ["HTTP/1.1 403 Forbidden"]


async def expecting(mesh: PolicyMesh, asked: str) -> list[str]:
    """Return the status lines of the responses to an upload that waits for 100 Continue."""
    url = urlsplit(mesh.url("client", "v1"))
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    headers = ("Host: v1", "Connection: close", "Expect: 100-continue", "Content-Length: 2", "", "")
    writer.write("\r\n".join((f"POST {asked} HTTP/1.1", *headers)).encode())
    lines = []
    async with asyncio.timeout(60):
        while line := (await reader.readline()).decode().rstrip():
            lines.append(line)
            if line.startswith("HTTP/1.1 100"):
                await reader.readline()
                writer.write(b"ok")
            else:
                break
    writer.close()
    return lines
