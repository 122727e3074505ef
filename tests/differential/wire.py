"""Requests and connections of clients as bytes: HTTP/1.1, HTTP/2, gRPC over HTTP/2, TCP, and TLS."""

import asyncio
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, ResponseReceived, StreamReset

from catalog.oracle.decide import Request
from tests.differential.servers import SAW, SERVED_BY
from tests.differential.topology import TLS, is_http
from tests.gateway.client import untrusting

_SECONDS = 30.0
_STATUSES: Final = {"0": 200, "2": 500, "7": 403, "12": 404, "13": 400, "14": 503, "16": 401}
"""HTTP statuses of gRPC statuses without an answer of a server, by gRPC's own table in reverse."""

Headers = tuple[tuple[str, str], ...]


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

    `saw` is the request target that reached the answering server. A gRPC status of a sidecar is an HTTP
    status here. Names of `headers` are in lower case.
    """

    status: int
    by: str = ""
    saw: bytes = b""
    headers: Headers = field(default=(), compare=False)

    def value(self, name: str) -> str | None:
        """Return the values of a header with commas; None without the header."""
        values = [value for given, value in self.headers if given == name]
        return ",".join(values) if values else None


NO_ANSWER = Answered(0)
_UNTRUSTING: Final = untrusting()
_HANDSHAKE: Final = 22
"""First byte of a server in TLS."""


async def exchange(
    address: str, port: int, asked: Request, tls: ssl.SSLContext | None, where: str = ""
) -> Answered:
    """Send one request on a new connection, optionally from a given address.

    A connection that ends without a byte counts as no response. Without `tls` a connection to a port of TLS
    asks for the server name of the request.
    """
    place = (where, 0) if where else None
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(address, port, ssl=tls, local_addr=place)
            try:
                if asked.port == TLS and tls is None:
                    return await _greeting_in_tls(asked.server_name or "", reader, writer)
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


async def _greeting_in_tls(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answered:
    """Offer TLS, and return the greeting of a server in TLS, or of one that speaks without TLS at once."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = _UNTRUSTING.wrap_bio(received, sent, server_hostname=name or None)
    is_first = True
    while True:
        try:
            session.do_handshake()
            greeting = session.read(65536)
        except ssl.SSLWantReadError:
            writer.write(sent.read())
            data = await reader.read(65536)
            if not data:
                return NO_ANSWER
            if is_first and data[0] != _HANDSHAKE:
                return Answered(200, data.decode().strip())
            is_first = False
            received.write(data)
        else:
            return Answered(200, greeting.decode().strip())


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
    pairs = (line.partition(":") for line in lines if line)
    return _answered(int(first.split(" ")[1]), ((name.lower(), value.strip()) for name, _, value in pairs))


def _answered(status: int, headers: Iterable[tuple[str, str]]) -> Answered:
    pairs = tuple(headers)
    known = dict(pairs)
    by = known.get(SERVED_BY, "")
    if not by and "grpc-status" in known:
        status = _STATUSES[known["grpc-status"]]
    return Answered(status, by, bytes.fromhex(known.get(SAW, "")), pairs)


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
                headers = [(str(name), str(value)) for name, value in event.headers or ()]
                return _answered(int(dict(headers)[":status"]), headers)
            if isinstance(event, StreamReset | ConnectionTerminated):
                return NO_ANSWER
        writer.write(connection.data_to_send())
    return NO_ANSWER
