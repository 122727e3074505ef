"""HTTP servers that answer with their name, and a load that counts answers and failures."""

import asyncio
import contextlib
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

REQUEST = b"GET / HTTP/1.1\r\nhost: front\r\n\r\n"
PAUSE = 0.002
"""Seconds between two requests of a connection: a load that leaves the processor to the proxies."""


async def serve(name: str, ends: AsyncExitStack) -> int:
    """Serve HTTP responses with a name; return the port."""
    body = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(name), name.encode())

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(body)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    ends.callback(server.close)
    return int(server.sockets[0].getsockname()[1])


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes = REQUEST
) -> tuple[int, str, bool]:
    """Send one request; return status, body, and whether the connection can be reused."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
    body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode("latin-1")
    return int(head[0].split()[1]), body, headers.get("connection") != "close"


async def who_answers(port: int, header: str = "") -> str:
    """Return the body of one response on a new connection, or the status or error.

    The request has a header if given, as `name: value`.
    """
    request = REQUEST.replace(b"\r\n\r\n", f"\r\n{header}\r\n\r\n".encode()) if header else REQUEST
    try:
        async with asyncio.timeout(30):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                status, body, _ = await ask(reader, writer, request)
            finally:
                writer.close()
    except (OSError, asyncio.IncompleteReadError) as error:
        return type(error).__name__
    return body if status == 200 else str(status)


@dataclass
class Load:
    """Connections that send requests continuously while the context is open."""

    port: int
    connections: int = 8
    answers: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    _made: Counter[int] = field(default_factory=Counter)
    _stopping: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        """Begin, and wait until every connection has had a response."""
        self._tasks = [asyncio.create_task(self._run(number)) for number in range(self.connections)]
        await self.more(self.connections)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End after the requests in progress."""
        self._stopping = True
        await asyncio.gather(*self._tasks)

    async def more(self, count: int, seconds: float = 60) -> None:
        """Wait until `count` further requests have been answered or have failed."""
        wanted = self.total + count
        async with asyncio.timeout(seconds):
            while self.total < wanted:
                await asyncio.sleep(PAUSE)

    async def turn(self, seconds: float = 60) -> None:
        """Wait until every connection has made a request that began from now on."""
        wanted = {
            number: self._made[number] + 2 for number in range(self.connections)
        }  # one may be under way
        async with asyncio.timeout(seconds):
            while any(self._made[number] < count for number, count in wanted.items()):
                await asyncio.sleep(PAUSE)

    @property
    def total(self) -> int:
        """Return the number of requests."""
        return self.answers.total() + self.failures.total()

    async def _run(self, number: int) -> None:
        while not self._stopping:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError as error:
                self._count(number, self.failures, type(error).__name__)
                await asyncio.sleep(PAUSE)
                continue
            try:
                await self._converse(number, reader, writer)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                self._count(number, self.failures, type(error).__name__)
            finally:
                writer.close()

    async def _converse(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        usable = True
        while usable and not self._stopping:
            async with asyncio.timeout(30):
                status, body, usable = await ask(reader, writer)
            if status == 200:
                self._count(number, self.answers, body)
            else:
                self._count(number, self.failures, str(status))
            await asyncio.sleep(PAUSE)

    def _count(self, number: int, outcomes: Counter[str], outcome: str) -> None:
        outcomes[outcome] += 1
        self._made[number] += 1
