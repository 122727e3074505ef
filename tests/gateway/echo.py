"""Backends of the cases: they answer with their name and record what they got, on HTTP, gRPC, TCP and TLS.

Request headers of a caller control an HTTP answer:

- `x-reply: 503` is the status, and with `x-fail: 2` only of the first two tries of this request.
- `x-delay: 0.6` delays the answer by these seconds, and with `x-delays: 1` only that of the first try.
- `x-give: name=value` is a response header; several are separated by `;`.

A request to upgrade to WebSocket is answered with 101, and nothing follows.
"""

import asyncio
import contextlib
import json
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

import grpc
import grpc.aio

TAG: Final = "x-tag"
"""Request header that identifies one request of one case, in all its tries and copies."""

HTTP, OTHER, GRPC, TCP, TLS = 8080, 8081, 50051, 9000, 9443


@dataclass(frozen=True)
class Arrival:
    """A request as a backend got it; header names are in lower case, and `length` is that of the body."""

    backend: str
    path: str
    host: str
    headers: tuple[tuple[str, str], ...]
    port: int = 0
    length: int = 0


@dataclass
class Journal:
    """All requests that arrived at backends, by tag."""

    arrivals: dict[str, list[Arrival]] = field(default_factory=lambda: defaultdict(list))

    def of(self, tag: str) -> list[Arrival]:
        """Return the arrivals of a request, its copies among them."""
        return self.arrivals.get(tag, [])


async def start(name: str, address: str, journal: Journal, tls: ssl.SSLContext, ends: AsyncExitStack) -> None:
    """Serve at an address until the exit stack ends."""
    for port in (HTTP, OTHER):
        await _serve(_http(name, journal, port), address, port, ends)
    await _serve(_lines(name), address, TCP, ends)
    await _serve(_lines(name), address, TLS, ends, tls)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_AnyMethod(name, journal),))
    server.add_insecure_port(f"{address}:{GRPC}")
    await server.start()
    ends.push_async_callback(server.stop, 0)


_Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _serve(
    handle: _Serve, address: str, port: int, ends: AsyncExitStack, tls: ssl.SSLContext | None = None
) -> None:
    server = await asyncio.start_server(handle, address, port, ssl=tls)
    ends.callback(server.close)


def _http(name: str, journal: Journal, port: int) -> _Serve:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, headers = parse_head(head)
                known = dict(headers)
                length = len(await read_body(reader, known))
                path, host = first.split(" ")[1], known.get("host", "")
                arrival = Arrival(name, path, host, headers, port, length)
                journal.arrivals[known.get(TAG, "")].append(arrival)
                tries = sum(item.backend == name for item in journal.of(known.get(TAG, "")))
                if tries <= int(known.get("x-delays", "1000")):
                    await asyncio.sleep(float(known.get("x-delay", "0")))
                writer.write(_answer(arrival, known, tries, is_head=first.startswith("HEAD ")))
        writer.close()

    return handle


def _answer(arrival: Arrival, known: dict[str, str], tries: int, *, is_head: bool) -> bytes:
    fails = tries <= int(known.get("x-fail", "1000"))
    status = int(known.get("x-reply", "200")) if fails else 200
    given = "".join(
        f"{name}: {value}\r\n"
        for name, _, value in (item.partition("=") for item in known.get("x-give", "").split(";") if item)
    )
    given += f"x-by: {arrival.backend}\r\n"
    if known.get("upgrade") == "websocket":
        return f"HTTP/1.1 101 Upgrade\r\nconnection: upgrade\r\nupgrade: websocket\r\n{given}\r\n".encode()
    body = json.dumps({"by": arrival.backend, "port": arrival.port}).encode()
    head = f"HTTP/1.1 {status} Answer\r\ncontent-length: {len(body)}\r\n{given}\r\n"
    return head.encode() + (b"" if is_head else body)


def parse_head(head: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the first line and the headers of an HTTP/1.1 message; names are in lower case."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, tuple((name.lower(), value.strip()) for name, _, value in pairs)


async def read_body(reader: asyncio.StreamReader, known: dict[str, str]) -> bytes:
    """Return the body of an HTTP/1.1 message with these headers."""
    if known.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(known.get("content-length", 0)))
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body


def _lines(name: str) -> _Serve:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while line := await reader.readline():
                writer.write(name.encode() + b": " + line)
                await writer.drain()
        writer.close()

    return handle


class _AnyMethod(grpc.GenericRpcHandler):  # type: ignore[misc] # gRPC has no types here
    """Handler of all methods of all services: answers with the backend's name."""

    def __init__(self, name: str, journal: Journal) -> None:
        self._name, self._journal = name, journal

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return a handler that records the call."""
        headers = tuple(
            (key, value if isinstance(value, str) else value.decode())
            for key, value in details.invocation_metadata or ()
        )
        arrival = Arrival(self._name, details.method, "", headers, GRPC)
        self._journal.arrivals[dict(headers).get(TAG, "")].append(arrival)

        async def answer(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            await context.send_initial_metadata((("x-by", self._name),))
            return self._name.encode()

        return grpc.unary_unary_rpc_method_handler(answer)
