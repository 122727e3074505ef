"""Calls of applications, and their outcomes; a call without a response in time is an error."""

import asyncio
import contextlib
import re
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from tests.e2e.policy.applications import SERVED_BY
from tests.tools.deadline import until

_SECONDS = 30


@dataclass(frozen=True)
class Answer:
    """An HTTP status (0 without a connection or response), the answering server, and the content."""

    status: int
    by: str = ""
    text: str = ""


NOBODY = Answer(0)
CLOSED = ""


async def request(
    url: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    session: aiohttp.ClientSession | None = None,
) -> Answer:
    """Send an HTTP request, on a new connection unless a session is given."""
    if session is None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as alone:
            return await request(url, method, headers, alone)
    try:
        async with asyncio.timeout(_SECONDS):
            async with session.request(method, url, headers=headers, max_headers=2000) as answer:
                text = await answer.text()
                return Answer(answer.status, answer.headers.get(SERVED_BY, ""), text)
    except (aiohttp.ClientError, ConnectionError):
        return NOBODY


async def exchange(
    address: str,
    port: int,
    *,
    first: bool = False,
    tls: ssl.SSLContext | None = None,
    at: socket.socket | None = None,
    name: str | None = None,
) -> str:
    """Connect, send a line, and return the server's answer, or `CLOSED` without an answer.

    With `first`, the server must send first, and that greeting is included in the result. `at` is a socket to
    connect; `name` is the TLS server name.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            if at is not None:
                try:
                    await asyncio.get_running_loop().sock_connect(at, (address, port))
                except BaseException:  # whoever gives up meanwhile: no transport has it yet
                    at.close()
                    raise
                reader, writer = await asyncio.open_connection(sock=at, ssl=tls, server_hostname=name)
            else:
                asked = name if tls is not None else None
                reader, writer = await asyncio.open_connection(address, port, ssl=tls, server_hostname=asked)
            try:
                greeting = (await reader.readline()).decode() if first else ""
                if first and not greeting:
                    return CLOSED
                writer.write(b"hello\n")
                return greeting + (await reader.readline()).decode()
            finally:
                writer.transport.abort()  # a closing handshake would wait for Envoy's grace of a second
    except (ConnectionError, ssl.SSLError):
        return CLOSED


async def status_over(tls: ssl.SSLContext, address: str, port: int, path: str = "/") -> Answer:
    """Send an HTTP request directly to a sidecar with a certificate of the caller's choice."""
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(address, port, ssl=tls)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
            finally:
                writer.transport.abort()
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
        return NOBODY
    by = [line.partition(": ")[2] for line in head.splitlines() if line.lower().startswith(SERVED_BY)]
    return Answer(int(head.split(" ")[1]), *by)


async def raw(place: tuple[str, int], sent: str, tls: ssl.SSLContext | None = None) -> tuple[str, str]:
    """Send bytes unchanged and return the head and the body of the response, or empty strings.

    The body has the length of its header, or ends with the connection.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(*place, ssl=tls)
            try:
                writer.write(sent.encode())
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = re.search(r"^content-length: (\d+)", head, re.IGNORECASE | re.MULTILINE)
                body = await (reader.readexactly(int(length[1])) if length else reader.read())
            finally:
                writer.transport.abort()
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
        return "", ""
    return head, body.decode()


@dataclass
class Load:
    """Continuous calls and their outcomes."""

    every: Counter[str] = field(default_factory=Counter)
    _recent: Counter[str] = field(default_factory=Counter)

    async def more(self, count: int) -> Counter[str]:
        """Wait for `count` calls that begin from now on, and return their outcomes."""
        self._recent = recent = Counter[str]()

        async def enough() -> bool:
            return recent.total() >= count

        await until(enough)
        return Counter(recent)

    async def again(self, call: Callable[[], Awaitable[str]]) -> None:
        """Call without end."""
        while True:
            recent = self._recent
            word = await call()
            self.every[word] += 1
            recent[word] += 1


@asynccontextmanager
async def load(call: Callable[[], Awaitable[str]], concurrency: int = 2) -> AsyncIterator[Load]:
    """Call repeatedly while the block runs; `call` returns a word for its outcome."""
    result = Load()
    tasks = [asyncio.create_task(result.again(call), name="load") for _ in range(concurrency)]
    try:
        yield result
        assert not any(task.done() for task in tasks), "the load has ended by itself"
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
