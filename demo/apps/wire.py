"""Database protocol with the packet format of MySQL, in which the server sends the first message.

A packet has three bytes with the length of the payload (little-endian), one byte with the sequence number,
and the payload (MySQL client/server protocol, "protocol basics"). The greeting begins with protocol version
10. Commands are COM_QUIT, COM_QUERY and COM_PING; responses are OK (0x00) or ERR (0xff).
"""

import asyncio
import contextlib
from typing import Final

COM_QUIT: Final = 0x01
COM_QUERY: Final = 0x03
COM_PING: Final = 0x0E
GREETING: Final = b"\x0a8.0.0-bookstore\x00"
OK_ANSWER: Final = b"\x00\x01\x00\x02\x00"
_MAX_PAYLOAD: Final = 1 << 16


class WireError(OSError):
    """Error for a peer with another protocol, or for a refused command."""


def packet(sequence: int, payload: bytes) -> bytes:
    """Return a packet of MySQL's protocol with this sequence number and payload."""
    return len(payload).to_bytes(3, "little") + bytes([sequence & 0xFF]) + payload


def refusal(text: str) -> bytes:
    """Return the payload of an ERR response (code 1064, parse error)."""
    return b"\xff" + (1064).to_bytes(2, "little") + b"#42000" + text.encode()


async def read_packet(reader: asyncio.StreamReader) -> bytes:
    """Read one payload; raise IncompleteReadError at the end of the stream.

    Raises WireError for a payload of more than 65,536 bytes.
    """
    header = await reader.readexactly(4)
    length = int.from_bytes(header[:3], "little")
    if length > _MAX_PAYLOAD:
        raise WireError(
            f"a packet has {length} bytes, more than {_MAX_PAYLOAD}: the peer speaks another protocol"
        )
    return await reader.readexactly(length)


class Client:
    """Client of the demo's database: one connection, after the greeting."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, host: str, port: int) -> "Client":
        """Connect to the database, and wait for the greeting; raise OSError or IncompleteReadError."""
        reader, writer = await asyncio.open_connection(host, port)
        try:
            greeting = await read_packet(reader)
            if not greeting.startswith(b"\x0a"):
                raise WireError("the greeting has another protocol version than 10")
        # Cancellation must close the connection too.
        except BaseException:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            raise
        return cls(reader, writer)

    async def insert(self, title: str, token: str = "") -> None:
        """Store one book; raise WireError if the database refuses the insert."""
        words = f"INSERT {title} {token}".strip()
        self._writer.write(packet(0, bytes([COM_QUERY]) + words.encode()))
        await self._writer.drain()
        answer = await read_packet(self._reader)
        if not answer.startswith(b"\x00"):
            raise WireError(f"the database refused the command: {answer[9:].decode(errors='replace')}")

    async def close(self) -> None:
        """Send COM_QUIT and close the connection; errors of an already closed connection are ignored."""
        with contextlib.suppress(OSError):
            if not self._writer.is_closing():
                self._writer.write(packet(0, bytes([COM_QUIT])))
                self._writer.close()
            await self._writer.wait_closed()
