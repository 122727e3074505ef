"""Requests as bytes, in HTTP/1.1 and HTTP/2, and servers that answer with their name."""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass, replace
from typing import Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, ResponseReceived, StreamReset

from catalog.decide import Request
from tests.differential.topology import is_http
from tests.golden.live import Serve

_SECONDS = 30.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\n"
_SERVED_BY = "x-served-by"


@dataclass(frozen=True)
class Asked:
    """A request as it is sent: its path may be written in another way than the application gets it.

    In HTTP/2 a cookie is sent in crumbs, a field for each of its pairs (RFC 9113, section 8.2.3).
    """

    request: Request
    path: str
    http2: bool = False

    @classmethod
    def over_http2(cls, request: Request, path: str) -> Self:
        """Ask over HTTP/2, where all cookies are one."""
        cookies = [value for name, value in request.headers if name.lower() == "cookie"]
        others = [each for each in request.headers if each[0].lower() != "cookie"]
        one = [("cookie", "; ".join(cookies))] if cookies else []
        return cls(replace(request, headers=(*others, *one)), path, http2=True)


@dataclass(frozen=True)
class Answered:
    """What came back: an HTTP status (200 for a TCP greeting, 0 for no answer at all), and from whom."""

    status: int
    by: str = ""


NO_ANSWER = Answered(0)


async def exchange(address: str, port: int, asked: Asked, tls: ssl.SSLContext | None) -> Answered:
    """Send one request on a connection of its own; a connection that ends without a word is no answer."""
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(address, port, ssl=tls)
            try:
                if not is_http(asked.request.port):
                    greeting = await reader.readline()
                    return Answered(200, greeting.decode().strip()) if greeting else NO_ANSWER
                if asked.http2:
                    return await _second(asked, reader, writer)
                writer.write(_first(asked))
                return _read(await reader.readuntil(b"\r\n\r\n"))
            finally:
                writer.transport.abort()  # a closing handshake would wait for Envoy's grace of a second
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
        return NO_ANSWER


def _first(asked: Asked) -> bytes:
    method = asked.request.method
    lines = [f"{method} {asked.path} HTTP/1.1"]
    lines.extend(f"{name}: {value}" for name, value in asked.request.headers)
    if method in ("POST", "PUT"):
        lines.append("content-length: 0")
    return "\r\n".join([*lines, "connection: close", "", ""]).encode()


def _read(head: bytes) -> Answered:
    first, *lines = head.decode("latin-1").split("\r\n")
    by = next((line.partition(": ")[2] for line in lines if line.lower().startswith(_SERVED_BY)), "")
    return Answered(int(first.split(" ")[1]), by)


async def _second(asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answered:
    connection = H2Connection(H2Configuration(client_side=True, header_encoding="latin-1"))
    connection.initiate_connection()
    given = [
        (name.lower(), part)
        for name, value in asked.request.headers
        for part in (value.split("; ") if name.lower() == "cookie" else [value])
    ]
    authority = next((value for name, value in given if name == "host"), "x")
    pseudo = {
        ":method": asked.request.method,
        ":scheme": "http",
        ":authority": authority,
        ":path": asked.path,
    }
    rest = [(name, value) for name, value in given if name != "host"]
    connection.send_headers(1, [*pseudo.items(), *rest], end_stream=True)
    writer.write(connection.data_to_send())
    while data := await reader.read(65536):
        for event in connection.receive_data(data):
            if isinstance(event, ResponseReceived):
                headers = {str(name): str(value) for name, value in event.headers or ()}
                return Answered(int(headers[":status"]), headers.get(_SERVED_BY, ""))
            if isinstance(event, StreamReset):
                return NO_ANSWER
        writer.write(connection.data_to_send())
    return NO_ANSWER


def web(name: str) -> Serve:
    """Return a server of HTTP/1.1 and HTTP/2, as the client's first bytes have it."""
    head = f"HTTP/1.1 200 OK\r\n{_SERVED_BY}: {name}\r\ncontent-length: 0\r\n\r\n".encode()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while first := await reader.readuntil(b"\r\n\r\n"):
                if first == _PREFACE:
                    await _serve_second(name, reader, writer)
                    break
                writer.write(head)
                await writer.drain()
        writer.close()

    return handle


async def _serve_second(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = H2Connection(H2Configuration(client_side=False))
    connection.initiate_connection()
    data = _PREFACE
    while data:
        for event in connection.receive_data(data):
            _answer(name, connection, event)
        writer.write(connection.data_to_send())
        await writer.drain()
        data = await reader.read(65536)


def _answer(name: str, connection: H2Connection, event: Event) -> None:
    match event:
        case RequestReceived():
            headers = [(":status", "200"), (_SERVED_BY, name), ("content-length", "0")]
            connection.send_headers(event.stream_id, headers, end_stream=True)
        case DataReceived():
            connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        case _:
            return


def greeter(name: str) -> Serve:
    """Return a server that says its name before the client has said anything."""

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(f"{name}\n".encode())
            await writer.drain()
        writer.close()

    return handle
