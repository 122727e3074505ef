"""A scripted API server for tests: each request is answered by the next part of a script."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from meshwright.kube.api import Api
from meshwright.kube.connection.access import Access, Server, User
from meshwright.kube.connection.connection import Connection
from meshwright.kube.resource import Resource

SERVICES = Resource("", "v1", "services", "Service")
"""What most tests ask for."""


@dataclass(frozen=True)
class ReceivedRequest:
    """A received request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Sequence[tuple[str, str]]
    body: bytes

    @property
    def streaming(self) -> bool:
        """Whether the request is a streaming list."""
        return "sendInitialEvents" in self.query

    @property
    def verb(self) -> str:
        """The verb of the request: stream, watch or list."""
        return "stream" if self.streaming else "watch" if "watch" in self.query else "list"


@dataclass(frozen=True)
class Line:
    """The connection of a request."""

    writer: asyncio.StreamWriter

    async def head(self, status: int = 200, *headers: str, content: str = "application/json") -> None:
        """Begin a chunked answer."""
        lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content}", "Transfer-Encoding: chunked", *headers]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def send(self, *values: object) -> None:
        """Send values as lines of JSON, all at once."""
        await self.chunk("".join(f"{json.dumps(item)}\n" for item in values).encode())

    async def chunk(self, data: bytes) -> None:
        """Send a chunk of the answer."""
        await self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """End a chunked answer correctly."""
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        """Send bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, said: object, status: int = 200, *headers: str) -> None:
        """Send a complete answer."""
        body = json.dumps(said).encode()
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(body)}"]
        await self.raw("\r\n".join([*lines, *headers, "", ""]).encode() + body)

    async def refuse(self, status: int, reason: str, message: str, *headers: str) -> None:
        """Send a Kubernetes Status with a failure."""
        await self.answer(failure(status, reason, message), status, *headers)

    def cut(self) -> None:
        """Abort the connection."""
        self.writer.transport.abort()

    async def hang(self) -> None:
        """Send no more data."""
        await asyncio.Event().wait()


Part = Callable[[ReceivedRequest, Line], Awaitable[None]]


class ScriptedServer:
    """A server that plays a script and repeats its last part. `asked` has the received requests."""

    def __init__(self, *script: Part, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[ReceivedRequest] = []
        self._script = list(script)
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def verbs(self) -> list[str]:
        """The verbs of all requests so far."""
        return [item.verb for item in self.asked]

    def then(self, *script: Part) -> None:
        """Replace the rest of the script."""
        self._script = list(script)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
                while not writer.transport.is_closing():
                    asked = await _request(reader)
                    self.asked.append(asked)
                    part = self._script.pop(0) if len(self._script) > 1 else self._script[0]
                    await part(asked, Line(writer))
        finally:
            self._tasks.discard(task)
            writer.transport.abort()


async def _request(reader: asyncio.StreamReader) -> ReceivedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ")
    headers = [
        (name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines if line)
    ]
    length = int(dict(headers).get("content-length", 0))
    parts = urlsplit(target)
    body = await reader.readexactly(length)
    return ReceivedRequest(method, parts.path, dict(parse_qsl(parts.query)), headers, body)


def failure(status: int, reason: str, message: str) -> dict[str, Any]:
    """Return a Kubernetes Status of a failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }


def service(name: str, version: int | str, namespace: str = "shop", **more: object) -> dict[str, Any]:
    """Return a Service; `more` are fields of its spec."""
    metadata = {"name": name, "namespace": namespace, "resourceVersion": str(version)}
    return {"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": more}


def listed(version: int | str, *items: object, more: str = "") -> dict[str, Any]:
    """Return a list of Services, whose items have no kind and apiVersion."""
    bare = [
        {k: v for k, v in item.items() if k not in ("kind", "apiVersion")} if isinstance(item, dict) else item
        for item in items
    ]
    return {
        "kind": "ServiceList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(version), **({"continue": more} if more else {})},
        "items": bare,
    }


def event(kind: str, body: object) -> dict[str, Any]:
    """Return an event of a watch."""
    return {"type": kind, "object": body}


def bookmark(version: int | str, *, end: bool = False) -> dict[str, Any]:
    """Return a bookmark; `end` marks the end of a streaming list."""
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"kind": "Service", "apiVersion": "v1", "metadata": metadata})


async def older(asked: ReceivedRequest, line: Line) -> None:
    """Refuse a streaming list, as servers before 1.34 do."""
    assert asked.streaming
    await line.refuse(
        422,
        "Invalid",
        "sendInitialEvents: Forbidden: is forbidden for watch unless the WatchList feature gate is enabled",
    )


def answering(said: object, status: int = 200, *headers: str) -> Part:
    """Return a part that sends a complete answer."""

    async def play(_: ReceivedRequest, line: Line) -> None:
        await line.answer(said, status, *headers)

    return play


def refusing(status: int, reason: str, message: str, *headers: str) -> Part:
    """Return a part that sends a failure."""
    return answering(failure(status, reason, message), status, *headers)


def streaming(*values: object) -> Part:
    """Return a part that sends lines and then keeps the stream open."""

    async def play(_: ReceivedRequest, line: Line) -> None:
        await line.head()
        if values:
            await line.send(*values)
        await line.hang()

    return play


@contextlib.asynccontextmanager
async def api_of(
    played: ScriptedServer, user: User | None = None, ca: Path | bytes = b""
) -> AsyncIterator[Api]:
    """Yield a client of a scripted server."""
    async with api_at(Server("played", played.url, ca=ca), user or User()) as api:
        yield api


def api_at(server: Server, user: User, answer: float = 75.0) -> Api:
    """Return a client of a server."""
    access = Access(server, user)
    return Api(Connection(lambda: access), answer=answer)
