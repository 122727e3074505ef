"""Requests as bytes, in HTTP/1.1 and HTTP/2, and servers that answer with their name."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RequestReceived,
    ResponseReceived,
    StreamReset,
)

from catalog.oracle.decide import Request
from tests.differential.topology import is_http
from tests.golden.running_mesh import Serve

_SECONDS = 30.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\n"
_SERVED_BY = "x-served-by"
_SAW = "x-saw"


def over_http2(request: Request) -> Request:
    """Return a request in its form over HTTP/2.

    There, all cookies are one header. They are sent in crumbs, a field for each pair (RFC 9113, section
    8.2.3).
    """
    cookies = [value for name, value in request.headers if name.lower() == "cookie"]
    others = [header for header in request.headers if header[0].lower() != "cookie"]
    one = [("cookie", "; ".join(cookies))] if cookies else []
    return replace(request, headers=(*others, *one), http2=True)


@dataclass(frozen=True)
class Answered:
    """A response: an HTTP status (200 for a TCP greeting, 0 without a response), and the answering server.

    `saw` is the request target that reached the answering server.
    """

    status: int
    by: str = ""
    saw: bytes = b""


NO_ANSWER = Answered(0)


async def exchange(
    address: str, port: int, asked: Request, tls: ssl.SSLContext | None, where: str = ""
) -> Answered:
    """Send one request on a new connection, optionally from a given address.

    A connection that ends without a byte counts as no response.
    """
    place = (where, 0) if where else None
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(address, port, ssl=tls, local_addr=place)
            try:
                if not is_http(asked.port):
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


def _first(asked: Request) -> bytes:
    method = asked.method
    lines = [f"{method} {asked.path} HTTP/1.1"]
    lines.extend(f"{name}: {value}" for name, value in asked.headers)
    if method in ("POST", "PUT"):
        lines.append("content-length: 0")
    return _bytes("\r\n".join([*lines, "connection: close", "", ""]))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _read(head: bytes) -> Answered:
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().partition(": ")[::2] for line in lines)
    return _answered(int(first.split(" ")[1]), headers)


def _answered(status: int, headers: Mapping[str, str]) -> Answered:
    return Answered(status, headers.get(_SERVED_BY, ""), bytes.fromhex(headers.get(_SAW, "")))


async def _second(asked: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answered:
    connection = H2Connection(
        H2Configuration(client_side=True, header_encoding="latin-1", validate_outbound_headers=False)
    )
    connection.initiate_connection()
    given = [
        (name.lower(), part)
        for name, value in asked.headers
        for part in (value.split("; ") if name.lower() == "cookie" else [value])
    ]
    authority = next((value for name, value in given if name == "host"), "x")
    pseudo = {
        ":method": asked.method,
        ":scheme": "http",
        ":authority": authority,
        ":path": asked.path,
    }
    rest = [(name, value) for name, value in given if name != "host"]
    fields = [(_bytes(name), _bytes(value)) for name, value in (*pseudo.items(), *rest)]
    connection.send_headers(1, fields, end_stream=True)
    writer.write(connection.data_to_send())
    while data := await reader.read(65536):
        for event in connection.receive_data(data):
            if isinstance(event, ResponseReceived):
                headers = {str(name): str(value) for name, value in event.headers or ()}
                return _answered(int(headers[":status"]), headers)
            if isinstance(event, StreamReset | ConnectionTerminated):
                return NO_ANSWER
        writer.write(connection.data_to_send())
    return NO_ANSWER


def web(name: str) -> Serve:
    """Return a server of HTTP/1.1 and HTTP/2, which it detects by the client's first bytes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while first := await reader.readuntil(b"\r\n\r\n"):
                if first == _PREFACE:
                    await _serve_second(name, reader, writer)
                    break
                saw = first.partition(b" ")[2].partition(b" ")[0].hex()
                head = (
                    f"HTTP/1.1 200 OK\r\n{_SERVED_BY}: {name}\r\n{_SAW}: {saw}\r\ncontent-length: 0\r\n\r\n"
                )
                writer.write(head.encode())
                await writer.drain()
        writer.close()

    return handle


async def _serve_second(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = H2Connection(
        H2Configuration(client_side=False, header_encoding=None, validate_inbound_headers=False)
    )
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
            saw = next(bytes(value) for key, value in event.headers or () if bytes(key) == b":path").hex()
            headers = [(":status", "200"), (_SERVED_BY, name), (_SAW, saw), ("content-length", "0")]
            connection.send_headers(event.stream_id, headers, end_stream=True)
        case DataReceived():
            connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        case _:
            return


def greeter(name: str) -> Serve:
    """Return a server that sends its name before the client has sent anything."""

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(f"{name}\n".encode())
            await writer.drain()
        writer.close()

    return handle
