"""Applications behind the sidecars: each answers with its name, on every protocol of its ports."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import grpc
import grpc.aio
from aiohttp import WSMsgType, web

from meshwright.sidecars.layout import OWN_ANSWER_HEADER

HTTP, ADMIN, GRPC, DATABASE, GREETER, ECHO, GRPC_IN_TLS = 8080, 8081, 50051, 3306, 7000, 9000, 50052
"""Where an application listens: two ports of HTTP, gRPC, two whose server speaks first, one of bytes.

At the last one gRPC in TLS of its own, where a test starts it."""

Bind = Callable[[int], socket.socket]
"""Makes a socket that is bound to a port of the application's."""

SERVED_BY = "x-served-by"

UNWELL: set[str] = set()
"""The names of applications that say of themselves, at `/well`, that they are not."""


async def start(name: str, bind: Bind, ends: AsyncExitStack) -> None:
    """Run all servers but gRPC until the exit stack ends."""
    for port in (HTTP, ADMIN):
        runner = web.AppRunner(_web(name, port), shutdown_timeout=0.1, max_headers=2000)
        await runner.setup()
        ends.push_async_callback(runner.cleanup)
        await web.SockSite(runner, bind(port)).start()
    greeting = f"{name} speaks first\n".encode()
    for port, first in ((DATABASE, greeting), (GREETER, greeting), (ECHO, b"")):
        server = await asyncio.start_server(lines(name, first), sock=bind(port))
        ends.callback(server.close)


async def start_grpc(
    name: str, address: str, ends: AsyncExitStack, own_tls: grpc.ServerCredentials | None = None
) -> None:
    """Run the gRPC service `test.Echo`: unary `Say`, `Fail`, `Never`, streaming `Count`, `Chat`; health."""
    server = grpc.aio.server()
    methods = {
        "Say": grpc.unary_unary_rpc_method_handler(_say(name)),
        "Fail": grpc.unary_unary_rpc_method_handler(_fail),
        "Never": grpc.unary_unary_rpc_method_handler(_never),
        "Count": grpc.unary_stream_rpc_method_handler(_count),
        "Chat": grpc.stream_stream_rpc_method_handler(_chat),
    }
    health = {"Check": grpc.unary_unary_rpc_method_handler(_health(name))}
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler("test.Echo", methods),
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", health),
        )
    )
    if own_tls is None:
        server.add_insecure_port(f"{address}:{GRPC}")
    else:
        server.add_secure_port(f"{address}:{GRPC_IN_TLS}", own_tls)
    await server.start()
    ends.push_async_callback(server.stop, 0)


def _web(name: str, port: int) -> web.Application:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/ws"):
            return await _echoed(request)
        headers = {SERVED_BY: name}
        if request.path.startswith("/status/"):
            return web.Response(status=int(request.path.split("/")[2]), headers=headers)
        if request.path == "/well":
            return web.Response(status=503 if name in UNWELL else 204, headers=headers)
        if request.path == "/told":
            lines = (f"{name}: {value}" for name, value in request.headers.items())
            return web.Response(text="\n".join(lines), headers=headers)
        if request.path == "/never":
            await asyncio.get_running_loop().create_future()  # until the client has gone
        if request.path == "/forged":
            headers[OWN_ANSWER_HEADER] = "called NR route_not_found"
        if request.path.startswith("/headers/"):
            headers |= {f"x-{number}": "y" for number in range(int(request.path.split("/")[2]))}
        # The raw request is returned, not this library's reading of it.
        return web.Response(text=f"{port} {request.raw_path}", headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    return app


async def _echoed(request: web.Request) -> web.WebSocketResponse:
    answer = web.WebSocketResponse()
    await answer.prepare(request)
    async for message in answer:
        if message.type is WSMsgType.TEXT:
            await answer.send_str(f"heard {message.data}")
    return answer


def lines(name: str, first: bytes = b"") -> Callable[..., Any]:
    """Return a connection handler that answers each line with the server's name and the line."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(first)
            while line := await reader.readline():
                writer.write(name.encode() + b": " + line)
                await writer.drain()
        writer.close()

    return handle


def _health(name: str) -> Callable[..., Any]:
    async def check(request: bytes, context: object) -> bytes:
        return b"\x08\x02" if name in UNWELL else b"\x08\x01"  # status: NOT_SERVING, or SERVING

    return check


def _say(name: str) -> Callable[..., Any]:
    async def say(request: bytes, context: object) -> bytes:
        return name.encode() + b": " + request

    return say


async def _fail(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    # Nothing was sent before, so the status is in the only headers ("Trailers-Only").
    await context.abort(grpc.StatusCode.UNAVAILABLE, "on purpose")
    raise AssertionError("abort does not return")


async def _never(request: bytes, context: object) -> bytes:
    await asyncio.get_running_loop().create_future()  # until the client has gone
    return b""


async def _count(request: bytes, context: object) -> AsyncIterator[bytes]:
    for number in range(int(request)):
        yield str(number).encode()


async def _chat(requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
    async for request in requests:
        yield b"heard " + request
