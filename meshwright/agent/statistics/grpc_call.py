"""A unary gRPC call over a separate connection, on h2.

The source is https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. A gRPC library is not used:
grpcio would stay in the memory of every agent, and a connection closed by grpclib stays open at a grpcio
server for 30 s.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

from meshwright.mesh.host_port import HostPort

OK: Final = 0
UNKNOWN: Final = 2
MOST_BYTES: Final = 64 * 1024
"""Greatest size of an answer in bytes."""
_PREFIX: Final = 5
_READ: Final = 16 * 1024


class CallFailed(Exception):
    """The gRPC call failed.

    `status` is gRPC's (https://grpc.github.io/grpc/core/md_doc_statuscodes.html).
    """

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


async def call(at: HostPort, name: str, tls: ssl.SSLContext, path: str, message: bytes) -> bytes:
    """Call the method at `path` of a server, verified as `name`; return the message of the answer.

    An example of `path` is `/meshwright.enrolment.v1.Renewal/Report`. Raises CallFailed for an unsuccessful
    answer, and OSError without an answer.
    """
    reader, writer = await asyncio.open_connection(at.host, at.port, ssl=tls, server_hostname=name)
    one = Call(name, path, message)
    try:
        while not one.is_over:
            writer.write(one.to_send())
            await writer.drain()
            if not one.is_over:
                one.take(await reader.read(_READ))
    finally:
        # A grpcio server does not answer the closing of TLS; waiting for it would leave the connection open.
        writer.transport.abort()
    return one.answer()


class Call:
    """A gRPC call on a separate connection, without I/O: bytes received in, bytes to send out."""

    def __init__(self, name: str, path: str, message: bytes) -> None:
        self._connection = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._connection.initiate_connection()
        self._stream = self._connection.get_next_available_stream_id()
        headers = [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", name),
            (":path", path),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ]
        self._connection.send_headers(self._stream, headers)
        self._left = b"\0" + len(message).to_bytes(4, "big") + message
        self._headers: dict[str, str] = {}
        self._content = b""
        self.is_over = False

    def to_send(self) -> bytes:
        """Return the bytes of the request to send now, as flow control allows; raise CallFailed."""
        try:
            self._send_more()
        except ProtocolError as error:
            raise CallFailed(UNKNOWN, f"the call was broken off: {error}") from error
        return self._connection.data_to_send()

    def _send_more(self) -> None:
        room = self._connection.local_flow_control_window(self._stream)
        while self._left and room > 0:
            size = min(room, self._connection.max_outbound_frame_size)
            part, self._left = self._left[:size], self._left[size:]
            self._connection.send_data(self._stream, part, end_stream=not self._left)
            room -= len(part)

    def take(self, received: bytes) -> None:
        """Process bytes from the server; raise CallFailed if an answer can no longer follow."""
        if not received:
            raise CallFailed(UNKNOWN, "the connection ended without an answer")
        try:
            events = self._connection.receive_data(received)
        except ProtocolError as error:
            raise CallFailed(UNKNOWN, f"that is not HTTP/2: {error}") from error
        self._take(events)

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case ResponseReceived(headers=headers) | TrailersReceived(headers=headers):
                    self._headers |= {str(name): str(value) for name, value in headers or ()}
                case DataReceived(data=data, flow_controlled_length=length):
                    self._content += data or b""
                    self._connection.acknowledge_received_data(length or 0, self._stream)
                    if len(self._content) > MOST_BYTES:
                        raise CallFailed(UNKNOWN, f"the answer is longer than {MOST_BYTES} bytes")
                case StreamEnded():
                    self.is_over = True
                case StreamReset(error_code=code) | ConnectionTerminated(error_code=code):
                    if not self.is_over:
                        raise CallFailed(UNKNOWN, f"the call was broken off, with the code {code} of HTTP/2")
                case _:
                    pass

    def answer(self) -> bytes:
        """Return the message of the answer; raise CallFailed without one."""
        text = self._headers.get("grpc-status", "")
        if text != str(OK):
            words = unquote(self._headers.get("grpc-message", "")) or f"HTTP {self._headers.get(':status')}"
            raise CallFailed(int(text) if text.isdecimal() else UNKNOWN, words)
        length = int.from_bytes(self._content[1:_PREFIX], "big")
        if len(self._content) != _PREFIX + length or self._content[0]:
            raise CallFailed(UNKNOWN, "the answer is not a single message")
        return self._content[_PREFIX:]
