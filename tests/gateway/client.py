"""Calls of the cases as a caller's application makes them; no library changes their paths."""

import asyncio
import contextlib
import json
import ssl
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import grpc
import grpc.aio

from tests.e2e.policy import calls
from tests.gateway.case_files import Call
from tests.gateway.echo import TAG, parse_head, read_body

_SECONDS: Final = 30
CLOSED: Final = "closed"


@dataclass(frozen=True)
class Answer:
    """The outcome of one call: a status, who answered, and the headers of the answer.

    `status` is that of HTTP, or of gRPC for a gRPC call; 0 with an empty `by` means a closed connection.
    """

    status: int
    by: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    port: int = 0

    @property
    def word(self) -> str:
        """Return the answering backend, or without one the status, or `closed`."""
        return self.by or (str(self.status) if self.status else CLOSED)


@dataclass
class Outcome:
    """Outcome of a call: the last answer, and the number of answers of each kind."""

    tag: str
    last: Answer
    words: Counter[str]


@dataclass
class Client:
    """Connections of callers, kept for further calls of the same Service port."""

    ends: AsyncExitStack
    _idle: dict[tuple[str, int], list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    async def outcome(self, call: Call, place: tuple[str, int], tag: str) -> Outcome:
        """Make a call as often as it says, one after the other, and return its outcome."""
        words: Counter[str] = Counter()
        last = Answer(0)
        async with self._caller(call, place, tag) as once:
            for _ in range(call.count):
                try:
                    async with asyncio.timeout(_SECONDS):
                        last = await once()
                except ConnectionError:
                    last = Answer(0)  # refused: the sidecar does not offer the Service
                except TimeoutError:
                    last = Answer(0, f"no answer within {_SECONDS} s")
                words[last.word] += 1
        return Outcome(tag, last, words)

    @asynccontextmanager
    async def _caller(
        self, call: Call, place: tuple[str, int], tag: str
    ) -> AsyncIterator[Callable[[], Awaitable[Answer]]]:
        if not call.grpc:
            yield lambda: self._line(call, place) if call.line else self._http(call, place, tag)
            return
        async with grpc.aio.insecure_channel("{}:{}".format(*place)) as channel:
            yield lambda: _grpc(call, channel, tag)

    async def _line(self, call: Call, place: tuple[str, int]) -> Answer:
        tls = untrusting() if call.sni else None
        answer = await calls.exchange(*place, tls=tls, name=call.sni or None)
        return Answer(200 if answer else 0, answer.partition(":")[0])

    async def _http(self, call: Call, place: tuple[str, int], tag: str) -> Answer:
        message = _message(call, tag)
        while self._idle[place]:
            reader, writer = self._idle[place].pop()
            if not reader.at_eof():
                break
        else:
            reader, writer = await asyncio.open_connection(*place)
            self.ends.callback(writer.transport.abort)
        writer.write(message)
        try:
            first, headers, body = await _response(reader, call.method)
        except (ConnectionError, asyncio.IncompleteReadError):
            return Answer(0)
        if dict(headers).get("connection") not in ("close", "upgrade"):
            self._idle[place].append((reader, writer))
        by = dict(headers).get("x-by", "")
        port = json.loads(body)["port"] if by and body else 0
        return Answer(int(first.split(" ")[1]), by, headers, port)


def untrusting() -> ssl.SSLContext:
    """Return a TLS client that accepts any certificate, because cases look at the backend alone."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _message(call: Call, tag: str) -> bytes:
    host = call.host or call.service
    lines = [f"{name}: {value}" for name, value in (("Host", host), (TAG, tag), *call.headers)]
    head = "\r\n".join((f"{call.method} {call.path} HTTP/1.1", *lines, "", ""))
    # The content does not matter, only whether all of it arrives.
    return head.encode("latin-1") + b"x" * int(dict(call.headers).get("content-length", 0))


async def _response(
    reader: asyncio.StreamReader, method: str
) -> tuple[str, tuple[tuple[str, str], ...], bytes]:
    first, headers = parse_head(await reader.readuntil(b"\r\n\r\n"))
    if method == "HEAD" or first.split(" ")[1] in ("101", "204", "304"):
        return first, headers, b""
    return first, headers, await read_body(reader, dict(headers))


async def _grpc(call: Call, channel: grpc.aio.Channel, tag: str) -> Answer:
    headers = ((TAG, tag), *((name.lower(), value) for name, value in call.headers))
    request = channel.unary_unary(f"/{call.grpc}")(b"", metadata=headers, timeout=_SECONDS)
    by = ""
    with contextlib.suppress(grpc.aio.AioRpcError):
        by = (await request).decode()
    answered = tuple((key, str(value)) for key, value in await request.initial_metadata() or ())
    return Answer((await request.code()).value[0], by, answered)
