"""One stream at the edge: the value machine between a transport that reads and one that writes.

The reader takes a request at a time, and waits while answers to earlier ones are unsent; the writer sends
one response at a time, and takes the newest snapshot when it is ready for it. So a slow client delays
nobody, and holds at most one pending state.
"""

import asyncio
import random
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from xds.access import Authenticator, Ending, Observer, Peer, Refused
from xds.cache import NodeKey, Snapshots
from xds.decoder import Decoder
from xds.encoder import Encoder
from xds.limits import Excess, Limits, check_channel, check_names, check_node
from xds.resource import TypeUrl
from xds.services import Discovery
from xds.snapshot import Snapshot
from xds.status import StreamStatus, Variant, type_status
from xds.stream import AdsStream, DeltaStream
from xds.waking import Waking
from xds.wire import DeltaRequest, Node, Request, Response, WireError

AnyRequest = TypeVar("AnyRequest", Request, DeltaRequest)


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
        discovery: Discovery,
        node_key: NodeKey,
        peer: Peer,
        *,
        cache: Snapshots,
        encoder: Encoder,
        decoder: Decoder,
        authenticator: Authenticator,
        observer: Observer,
        limits: Limits,
        waking: Waking,
    ) -> None:
        self.node_key = node_key
        self.peer = peer
        self._number = number
        self._variant = discovery.variant
        self._only_type = discovery.type_url
        self._cache = cache
        self._encoder = encoder
        self._decoder = decoder
        self._authenticator = authenticator
        self._observer = observer
        self._limits = limits
        self._waking = waking
        self._since = datetime.now(UTC)
        self._stream = AdsStream() if discovery.variant is Variant.SOTW else DeltaStream()
        self._node: Node | None = None
        self._outbox: list[Response] = []
        self._sent_at: dict[TypeUrl, datetime] = {}
        self._time = asyncio.get_running_loop().time
        self._writing_since: float | None = None
        self._checked: tuple[str, ...] = ()
        self._work = asyncio.Event()
        self._room: asyncio.Event | None = None
        self._served = False
        self._current: Snapshot | None = None
        self._leaving: tuple[Ending, str] | None = None
        self._ending: asyncio.Future[tuple[Ending, str]] = asyncio.get_running_loop().create_future()
        self._deadline: asyncio.TimerHandle | None = None
        self._heartbeat: asyncio.TimerHandle | None = None

    async def run(self, transport: Transport) -> tuple[Ending, str]:
        """Converse until one side ends it; return why, with details for a log."""
        loop = asyncio.get_running_loop()
        watch = self._cache.watch(self.node_key, lambda: self._waking.wake(self._work))
        timers = (
            loop.call_later(self._limits.unserved_seconds, self._end_unserved),
            loop.call_later(self._limits.age(random.random()), self.leave, Ending.AGED),  # noqa: S311 - no secret
        )
        tasks = [
            self._start(self._read(transport), "reader"),
            self._start(self._write(transport), "writer"),
        ]
        self._work.set()
        try:
            return await self._ending
        finally:
            for timer in (*timers, self._deadline, self._heartbeat):
                if timer is not None:
                    timer.cancel()
            self._cache.unwatch(watch)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def end(self, ending: Ending, detail: str = "") -> None:
        """End it; the first reason given counts."""
        if not self._ending.done():
            self._ending.set_result((ending, detail))

    def leave(self, ending: Ending, detail: str = "") -> None:
        """End it between two messages, when all that is due has been written."""
        self._leaving = self._leaving or (ending, detail)
        self._work.set()

    def check_writing(self, now: float) -> None:
        """End it if a write takes too long: cancelled, it has spoilt the stream. `now` is the loop's time.

        Whoever serves asks this of all its streams from time to time: a timer for each write costs more
        than the rest of it.
        """
        since, longest = self._writing_since, self._limits.write_seconds
        if since is not None and now - since > longest:
            self.end(Ending.SLOW, f"a write took over {longest} s")

    def recheck(self) -> None:
        """Ask again who the client is; end the stream if it is refused by now, or somebody else."""
        try:
            if self._authenticator.authenticate(self.peer) != self.node_key:
                self.end(Ending.REFUSED, "identity changed")
        except Refused as refused:
            self.end(Ending.REFUSED, refused.reason)
        except Exception as error:  # noqa: BLE001 - a hook that fails ends this stream, not the round
            if not self._ending.done():
                self._ending.set_exception(error)

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
        return asyncio.create_task(self._guarded(coroutine), name=f"xds-stream-{self._number}-{role}")

    async def _guarded(self, coroutine: Coroutine[object, object, tuple[Ending, str]]) -> None:
        try:
            self.end(*await coroutine)
        except Refused as refused:
            self.end(Ending.REFUSED, refused.reason)
        except Excess as error:
            self.end(Ending.TOO_LARGE, str(error))
        except WireError as error:
            self.end(Ending.INVALID, str(error))
        except Disconnected:
            self.end(Ending.CLIENT)
        except Exception as error:
            if self._ending.done():
                raise
            self._ending.set_exception(error)

    async def _read(self, transport: Transport) -> tuple[Ending, str]:
        while (message := await transport.read()) is not None:
            if responses := self._take(message):
                self._outbox.extend(responses)
                self._work.set()
            self._watch_gate()
            while len(self._outbox) >= self._limits.unsent_responses:
                self._room = asyncio.Event()
                await self._room.wait()
        return Ending.CLIENT, ""

    def _take(self, message: bytes) -> list[Response]:
        match self._stream:
            case AdsStream() as sotw:
                request = self._looked_at(self._decoder.sotw(message))
                if request.names is not self._checked:
                    check_names(request.names, self._limits)
                    self._checked = request.names
                responses = sotw.on_request(request)
                type_url = request.type_url
            case DeltaStream() as delta:
                delta_request = self._looked_at(self._decoder.delta(message))
                check_names(delta_request.subscribe, self._limits)
                responses = delta.on_request(delta_request)
                type_url = delta_request.type_url
        check_channel(*self._stream.size(type_url), self._limits)
        return responses

    def _looked_at(self, request: AnyRequest) -> AnyRequest:
        """Check the first request's node (S2, S3, S4) and any request's type (S6), and tell of answers."""
        if self._node is None:
            if request.node is None or not request.node.id:
                raise WireError("the first request has no node.id")
            check_node(request.node, self._limits)
            self._authenticator.accept_node(self.node_key, request.node)
            self._node = request.node
        if self._only_type is not None and not request.type_url:
            request = replace(request, type_url=self._only_type)
        if not request.type_url:
            raise WireError("a request on an aggregated stream has no type_url")
        if self._only_type is not None and self._only_type != request.type_url:
            raise WireError(f"a stream for {self._only_type} was asked for {request.type_url[:200]}")
        if (response := self._stream.awaiting(request.type_url, request.nonce)) is not None:
            self._observer.answered(self.node_key, response, request.rejection)
            if request.rejection is not None:
                # What is served instead must be known before the answer leads on to removals: it may need
                # what the rejected one did not.
                self._take_newest()
                self._work.set()
        return request

    def _send(self, responses: Iterable[Response]) -> None:
        self._outbox.extend(responses)
        if self._outbox:
            self._work.set()
        self._watch_gate()

    def _watch_gate(self) -> None:
        """Start a timer where the machine waits for the client, and stop it where it does not."""
        waiting = self._stream.is_waiting
        if not waiting:
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
        while True:
            await self._work.wait()
            self._work.clear()
            self._take_newest()
            while self._outbox:
                await self._write_one(transport, self._outbox.pop(0))
            if self._room is not None:
                self._room.set()
                self._room = None
            if self._leaving is not None:
                return self._leaving

    def _take_newest(self) -> None:
        """Take what is to be served now, if that is something else than before."""
        newest = self._cache.snapshot(self.node_key)
        if newest is None or newest is self._current:
            return
        self._current, self._served = newest, True
        self._outbox.extend(self._stream.on_snapshot(newest))
        self._watch_gate()
        self._keep_alive(newest.shortest_ttl)

    def _keep_alive(self, ttl: float | None) -> None:
        """Send word of resources with a time to live three times in the shortest (N5)."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None
        if ttl is not None and isinstance(self._stream, DeltaStream):
            self._heartbeat = asyncio.get_running_loop().call_later(ttl / 3, self._beat, self._stream, ttl)

    def _beat(self, stream: DeltaStream, ttl: float) -> None:
        self._send(stream.on_heartbeat())
        self._heartbeat = None
        self._keep_alive(ttl)

    async def _write_one(self, transport: Transport, response: Response) -> None:
        message = self._encoder.encode(self._variant, response)
        self._writing_since = self._time()
        await transport.write(message)
        self._writing_since = None
        self._sent_at[response.type_url] = datetime.now(UTC)
        self._observer.sent(self.node_key, response, len(message))

    def _end_unserved(self) -> None:
        if not self._served:
            self.end(Ending.NOT_SERVED, f"nothing to serve for {self._limits.unserved_seconds} s")
