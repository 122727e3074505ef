"""One stream at the edge: the value machine between a transport that reads and one that writes.

The reader takes a request at a time, and waits while answers to earlier ones are unsent; the writer sends
one response at a time, and takes the newest snapshot when it is ready for it. So a slow client delays
nobody, and holds at most one pending state.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from xds.access import Authenticator, Ending, Observer, Peer, Refused
from xds.cache import NodeKey, SnapshotCache
from xds.encoder import Encoder
from xds.resource import TypeUrl
from xds.status import StreamStatus, Variant, type_status
from xds.stream import AdsStream, DeltaStream
from xds.wire import DeltaRequest, Node, Request, Response, WireError, read_delta_request, read_request


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what clients may cost; seconds, bytes and numbers."""

    request_bytes: int = 16 * 1024 * 1024
    streams_per_node: int | None = 8
    unsent_responses: int = 8
    write_seconds: float = 20.0
    warming_seconds: float = 16.0
    unserved_seconds: float = 300.0
    recheck_seconds: float = 30.0


class Disconnected(Exception):
    """The client is gone; nothing can be written any more."""


class Transport(Protocol):
    """A bidirectional stream of messages."""

    async def read(self) -> bytes | None:
        """Return the next message, or None when the client has sent its last."""

    async def write(self, message: bytes) -> None:
        """Send one message; raise Disconnected. It must not be called again after a cancelled call."""


class Conversation:
    """Serves one authenticated stream until `run` returns how it ended."""

    def __init__(
        self,
        number: int,
        variant: Variant,
        node_key: NodeKey,
        peer: Peer,
        *,
        cache: SnapshotCache,
        encoder: Encoder,
        authenticator: Authenticator,
        observer: Observer,
        limits: Limits,
    ) -> None:
        self.node_key = node_key
        self.peer = peer
        self._number = number
        self._variant = variant
        self._cache = cache
        self._encoder = encoder
        self._authenticator = authenticator
        self._observer = observer
        self._limits = limits
        self._since = datetime.now(UTC)
        self._stream = AdsStream() if variant is Variant.SOTW else DeltaStream()
        self._node: Node | None = None
        self._outbox: deque[Response] = deque()
        self._sent_at: dict[TypeUrl, datetime] = {}
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._served = False
        self._ending: asyncio.Future[tuple[Ending, str]] = asyncio.get_running_loop().create_future()
        self._deadline: asyncio.TimerHandle | None = None

    async def run(self, transport: Transport) -> tuple[Ending, str]:
        """Converse until one side ends it; return why, with details for a log."""
        watch = self._cache.watch(self.node_key, self._work.set)
        unserved = asyncio.get_running_loop().call_later(self._limits.unserved_seconds, self._end_unserved)
        tasks = [
            self._start(self._read(transport), "reader"),
            self._start(self._write(transport), "writer"),
        ]
        self._work.set()
        try:
            return await self._ending
        finally:
            unserved.cancel()
            if self._deadline is not None:
                self._deadline.cancel()
            self._cache.unwatch(watch)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def end(self, ending: Ending, detail: str = "") -> None:
        """End it; the first reason given counts."""
        if not self._ending.done():
            self._ending.set_result((ending, detail))

    def recheck(self) -> None:
        """Ask again who the client is; end the stream if it is refused by now, or somebody else."""
        try:
            if self._authenticator.authenticate(self.peer) != self.node_key:
                self.end(Ending.REFUSED, "identity changed")
        except Refused as refused:
            self.end(Ending.REFUSED, refused.reason)

    def status(self) -> StreamStatus:
        """Describe the stream as it is now."""
        types = tuple(type_status(c, self._sent_at.get(c.type_url)) for c in self._stream.channels)
        return StreamStatus(
            self._number,
            self.node_key,
            self._node,
            self.peer.address,
            self._variant,
            self._since,
            self._served,
            types,
        )

    def _start(
        self, coroutine: Coroutine[object, object, tuple[Ending, str]], role: str
    ) -> asyncio.Task[None]:
        async def guarded() -> None:
            try:
                self.end(*await coroutine)
            except Refused as refused:
                self.end(Ending.REFUSED, refused.reason)
            except WireError as error:
                self.end(Ending.INVALID, str(error))
            except Disconnected:
                self.end(Ending.CLIENT)
            except Exception as error:
                if self._ending.done():
                    raise
                self._ending.set_exception(error)

        return asyncio.create_task(guarded(), name=f"xds-stream-{self._number}-{role}")

    async def _read(self, transport: Transport) -> tuple[Ending, str]:
        while (message := await transport.read()) is not None:
            self._send(self._take(message))
            while len(self._outbox) >= self._limits.unsent_responses:
                self._room.clear()
                await self._room.wait()
        return Ending.CLIENT, ""

    def _take(self, message: bytes) -> list[Response]:
        match self._stream:
            case AdsStream() as sotw:
                request = read_request(message)
                self._look_at(request)
                return sotw.on_request(request)
            case DeltaStream() as delta:
                delta_request = read_delta_request(message)
                self._look_at(delta_request)
                return delta.on_request(delta_request)

    def _look_at(self, request: Request | DeltaRequest) -> None:
        """Check the first request's node (S2, S3, S4) and any request's type (S6), and tell of answers."""
        if self._node is None:
            if request.node is None or not request.node.id:
                raise WireError("the first request has no node.id")
            self._authenticator.accept_node(self.node_key, request.node)
            self._node = request.node
        if not request.type_url:
            raise WireError("a request on an aggregated stream has no type_url")
        if self._stream.awaits(request.type_url, request.nonce):
            self._observer.answered(self.node_key, request.type_url, request.rejection)

    def _send(self, responses: Iterable[Response]) -> None:
        self._outbox.extend(responses)
        if self._outbox:
            self._work.set()
        self._watch_gate()

    def _watch_gate(self) -> None:
        """Start a timer where the machine waits for the client, and stop it where it does not."""
        if not self._stream.is_waiting:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(
                self._limits.warming_seconds, self._release
            )

    def _release(self) -> None:
        self._deadline = None
        self._send(self._stream.on_deadline())

    async def _write(self, transport: Transport) -> tuple[Ending, str]:
        current = None
        while True:
            await self._work.wait()
            self._work.clear()
            newest = self._cache.snapshot(self.node_key)
            if newest is not None and newest is not current:
                current, self._served = newest, True
                self._send(self._stream.on_snapshot(newest))
            while self._outbox:
                if not await self._write_one(transport, self._outbox.popleft()):
                    return Ending.SLOW, f"a write took over {self._limits.write_seconds} s"
            self._room.set()

    async def _write_one(self, transport: Transport, response: Response) -> bool:
        message = self._encoder.encode(self._variant, response)
        try:
            async with asyncio.timeout(self._limits.write_seconds):
                await transport.write(message)
        except TimeoutError:  # the write was cancelled, and with it the stream is spoilt: it must end
            return False
        self._sent_at[response.type_url] = datetime.now(UTC)
        self._observer.sent(self.node_key, response, len(message))
        return True

    def _end_unserved(self) -> None:
        if not self._served:
            self.end(Ending.NOT_SERVED, f"nothing to serve for {self._limits.unserved_seconds} s")
