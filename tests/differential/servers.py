"""Applications of the differential mesh: they answer with their name, and record what arrived.

Two request headers control a server of requests. `x-fail: 503 2` makes the first two tries of a request
fail with 503, and `x-slow: 2` delays the first two by SLOW seconds. Tries belong together by the header
`x-number`.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived
from h2.exceptions import ProtocolError

from tests.golden.running_mesh import Serve

NUMBER: Final = "x-number"
"""Request header that identifies a request in all its tries and copies."""

FAIL: Final = "x-fail"
DELAYED: Final = "x-slow"
SLOW: Final = 4.0
"""Seconds of a delayed answer: longer than each timeout of a random route."""

SERVED_BY: Final = "x-served-by"
SAW: Final = "x-saw"
GIVEN: Final = (("x-app", "app"), ("x-kept", "kept"))
"""Response headers that routes may change."""

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\n"
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Arrival:
    """A request as a server got it; names of headers are in lower case, and `host` is the authority."""

    by: str
    target: bytes
    headers: Headers

    def value(self, name: str) -> str | None:
        """Return the values of a header with commas; None without the header."""
        values = [value for given, value in self.headers if given == name]
        return ",".join(values) if values else None


@dataclass
class Journal:
    """The numbered requests that arrived at servers since the journal was cleared."""

    arrivals: dict[str, list[Arrival]] = field(default_factory=lambda: defaultdict(list))

    def of(self, number: str) -> list[Arrival]:
        """Return the arrivals of a numbered request, its copies among them."""
        return self.arrivals.get(number, [])


@dataclass(frozen=True)
class _Answer:
    """An answer that a server gives after `delay` seconds."""

    status: int
    headers: Headers
    delay: float


def web(name: str, journal: Journal) -> Serve:
    """Return a server of HTTP/1.1 and HTTP/2, which it detects by the client's first bytes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head == _PREFACE:
                    await _serve_second(name, journal, reader, writer)
                    break
                first, *lines = head.split(b"\r\n")
                pairs = (line.decode("latin-1").partition(":") for line in lines if line)
                headers = [(key, value.strip()) for key, _, value in pairs]
                answer = _answer(journal, Arrival(name, first.split(b" ")[1], _lowered(headers)))
                await asyncio.sleep(answer.delay)
                text = "".join(f"{key}: {value}\r\n" for key, value in answer.headers)
                writer.write(f"HTTP/1.1 {answer.status} Answer\r\n{text}\r\n".encode())
                await writer.drain()
        writer.close()

    return handle


def greeter(name: str) -> Serve:
    """Return a server that sends its name before the client has sent anything."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(f"{name}\n".encode())
            await writer.drain()
            # Closed with unread bytes, the connection would be reset, and the name perhaps lost.
            while await reader.read(65536):
                pass
        writer.close()

    return handle


def _answer(journal: Journal, arrival: Arrival) -> _Answer:
    number, tries = arrival.value(NUMBER), 1
    if number is not None:
        journal.arrivals[number].append(arrival)
        tries = len(journal.of(number))
    status, _, failing = (arrival.value(FAIL) or "200 0").partition(" ")
    is_slow = tries <= int(arrival.value(DELAYED) or 0)
    headers = ((SERVED_BY, arrival.by), (SAW, arrival.target.hex()), *GIVEN, ("content-length", "0"))
    return _Answer(int(status) if tries <= int(failing) else 200, headers, SLOW if is_slow else 0.0)


def _lowered(headers: Iterable[tuple[str, str]]) -> Headers:
    return tuple(("host" if name == ":authority" else name.lower(), value) for name, value in headers)


async def _serve_second(
    name: str, journal: Journal, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    connection = H2Connection(
        H2Configuration(client_side=False, header_encoding=None, validate_inbound_headers=False)
    )
    connection.initiate_connection()
    data = _PREFACE
    # Answers of one connection do not wait for a delayed one, so each has a task.
    async with asyncio.TaskGroup() as answers:
        while data:
            for event in connection.receive_data(data):
                if isinstance(event, DataReceived):
                    connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, RequestReceived):
                    answers.create_task(_second(name, journal, connection, writer, event), name="answer")
            writer.write(connection.data_to_send())
            await writer.drain()
            data = await reader.read(65536)


async def _second(
    name: str,
    journal: Journal,
    connection: H2Connection,
    writer: asyncio.StreamWriter,
    event: RequestReceived,
) -> None:
    pairs = [(bytes(key).decode("latin-1"), bytes(value)) for key, value in event.headers or ()]
    target = dict(pairs)[":path"]
    headers = _lowered((key, value.decode("latin-1")) for key, value in pairs)
    answer = _answer(journal, Arrival(name, target, headers))
    await asyncio.sleep(answer.delay)
    # The client may have reset the stream or closed the connection in the meantime.
    with contextlib.suppress(ProtocolError, ConnectionError):
        connection.send_headers(
            event.stream_id, [(":status", str(answer.status)), *answer.headers], end_stream=True
        )
        writer.write(connection.data_to_send())
        await writer.drain()
