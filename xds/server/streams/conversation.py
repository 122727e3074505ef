"""One discovery stream: the state machine between a reading and a writing transport.

The reader takes one request at a time, and pauses while too many responses are unsent. Due responses are made
and written wherever they become known, one at a time; the next snapshot is taken only after all due
responses. Therefore a slow client does not delay others, and has at most one pending state.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from xds.budget import Cost, LimitKind, check, cost
from xds.cache import Snapshots
from xds.discovery import Discovery
from xds.hooks import LARGE, Authenticator, Observer, StreamEnd
from xds.limits import Limits
from xds.protocol.delta import DeltaStream
from xds.protocol.resources.name_sets import longest
from xds.protocol.resources.resource import ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.sotw import AdsStream
from xds.protocol.wire import DeltaRequest, Node, Request, Response, WireError
from xds.server.resource_status import StreamDescription, TypeResources, resource_statuses
from xds.server.streams.call import Call, Result
from xds.server.streams.decoder import Decoder
from xds.server.streams.encoder import Encoder
from xds.server.streams.message_writer import FORGOTTEN, MessageWriter
from xds.server.streams.name_lists import AnyRequest
from xds.server.streams.pieces import WHOLE, joined, pieces
from xds.server.streams.wake_queue import WakeQueue
from xds.stream_status import StreamStatus, Variant, type_status
from xds.transport import Transport

IN_HAND: Final = 2
"""Copies of a request in memory while it is processed: one of gRPC and one of Python."""


class Conversation:
    """Serves one authenticated stream. `run` returns the reason for its end."""

    __slots__ = (
        *("_authenticator", "_cache", "_call", "_checked", "_current", "_deadline", "_decoder", "_encoder"),
        *("_goes_on", "_heartbeat", "_limits", "_node", "_observer", "_only_type", "_outbox", "_outgoing"),
        *(
            "_room",
            "_sent_at",
            "_served",
            "_since",
            "_stream",
            "_unserved",
            "_variant",
            "_waking",
            "node_key",
        ),
        "__weakref__",
    )

    def __init__(
        self,
        call: Call,
        discovery: Discovery,
        *,
        cache: Snapshots,
        encoder: Encoder,
        decoder: Decoder,
        authenticator: Authenticator,
        observer: Observer,
        limits: Limits,
        waking: WakeQueue,
    ) -> None:
        self.node_key = call.node_key
        self._call = call
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
        self._outbox: list[Response] = []  # nearly always empty; a deque takes ten times the memory
        self._sent_at: dict[TypeUrl, float] = {}
        self._checked: tuple[ResourceName, ...] = ()
        self._room: asyncio.Event | None = None
        self._goes_on = False
        self._served = False
        self._current: Snapshot | None = None
        self._unserved: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._heartbeat: asyncio.TimerHandle | None = None

    async def run(self, transport: Transport) -> Result:
        """Serve the stream until one side ends it; return the reason, with details for the log."""
        self._call.outgoing = self._outgoing = MessageWriter(transport)
        watch = self._cache.watch(self.node_key, self._wake)
        self._hold()
        self._call.on_leave = self._push  # leaves between two messages, after all due responses
        self._push()
        try:
            return await self._call.run(self._read(transport))
        finally:
            for timer in (self._unserved, self._deadline, self._heartbeat):
                if timer is not None:
                    timer.cancel()
            self._cache.unwatch(watch)

    @property
    def since(self) -> datetime:
        """Return the time at which the stream began."""
        return self._since

    def accepted(self, type_url: TypeUrl, name: ResourceName) -> Version | None:
        """Return the version of a resource that the client has accepted.

        None if it never requested the type.
        """
        return self._stream.accepted(type_url, name)

    def status(self) -> StreamStatus:
        """Describe the current state of the stream."""
        types = tuple(type_status(c, self._last_sent(c.type_url)) for c in self._stream.channels)
        return StreamStatus(
            self._call.number,
            self.node_key,
            self._node,
            self._call.peer.address,
            self._variant,
            self._since,
            self._served,
            types,
        )

    def described(self, snapshot: Snapshot | None) -> StreamDescription:
        """Describe the client's state of each resource; `snapshot` has the current resources."""
        scope = f"stream {self._call.number} ({self._variant}) of {self.node_key}"
        types = (
            TypeResources(c.type_url, self._last_sent(c.type_url), resource_statuses(c, snapshot))
            for c in self._stream.channels
        )
        return StreamDescription(self._node, scope, tuple(types))

    @property
    def node(self) -> Node | None:
        """Return the node that the client sent; None before its first request."""
        return self._node

    def _last_sent(self, type_url: TypeUrl) -> datetime | None:
        at = self._sent_at.get(type_url)
        return None if at is None else datetime.fromtimestamp(at, UTC)

    async def _read(self, transport: Transport) -> Result:
        while isinstance(message := await transport.receive(), bytes):
            if len(message) > WHOLE:
                await self._answer_long(message)
            else:
                if self._call.must_rest:
                    await self._call.rest()
                if not self._acknowledge(message):
                    began = time.thread_time()
                    self._answer(self._decoder.read(self._variant, message), began)
            del message  # it may have megabytes, and the next may arrive much later
            while len(self._outbox) >= self._limits.unsent_responses:
                self._room = asyncio.Event()
                await self._room.wait()
        return StreamEnd.CLIENT, ""

    def _acknowledge(self, message: bytes) -> bool:
        """Process a plain ACK, the most frequent request, if other streams have sent the same bytes.

        Return whether it was one.

        Plain ACKs are not charged, because their number is limited by the number of responses.
        """
        request = self._decoder.known(self._variant, message)
        if request is None or (response := self._stream.acknowledged(request)) is None:
            return False
        self._outgoing.is_free()  # the answered response is written, so its memory can be freed
        self._observer.answered(self.node_key, response, None, self._call.number)
        return True

    async def _answer_long(self, message: bytes) -> None:
        """Process a long request: one per account at a time, charged to the account while in memory."""
        bill = self._call.bill
        bill.charge(bytes, Cost(bytes=IN_HAND * len(message)))
        async with self._call.long:
            await self._call.rest()
            result: list[AnyRequest] = []
            began = time.thread_time()
            for piece in pieces(message, self._variant, self._limits):
                result.append(self._decoder.piece(self._variant, piece))
                self._call.spent(began)
                await self._call.pause()
                began = time.thread_time()
            request = joined(result)
            bill.release(bytes)
            self._answer(request, began)

    def _answer(self, request: AnyRequest, began: float) -> None:
        """Process a request, and charge the account for the time since `began` (time.thread_time)."""
        self._outbox.extend(self._take(request))
        self._watch_gate()
        self._call.spent(began)
        if self._outbox:
            self._write_due()
        else:
            self._outgoing.is_free()  # the response is written: release it

    def _take(self, request: AnyRequest) -> list[Response]:
        request = self._looked_at(request)
        match self._stream, request:
            case AdsStream() as sotw, Request():
                if request.names is not self._checked:
                    self._check(request.names)
                    self._checked = request.names
                responses = sotw.on_request(request)
            case DeltaStream() as delta, DeltaRequest():
                self._check(request.subscribe)
                self._check(request.initial_versions)
                responses = delta.on_request(request)
                self._report_held()
            case _:
                raise TypeError(f"a {self._variant} stream received a {type(request).__name__}")
        self._call.bill.charge(request.type_url, cost(self._stream.channel(request.type_url)))
        return responses

    def _check(self, names: Collection[ResourceName]) -> None:
        check(LimitKind.NAMES, len(names), self._limits.names_per_certificate)
        check(LimitKind.NAME, longest(names), self._limits.name_characters)

    def _looked_at(self, request: AnyRequest) -> AnyRequest:
        """Check the node of a first request (S2, S3, S4) and the type of any (S6).

        Report answers to the observer.
        """
        if self._node is None:
            if request.node is None or not request.node.id:
                raise WireError("the first request lacks node.id")
            check(LimitKind.NODE, request.node.size, self._limits.node_bytes)
            self._call.bill.charge(Node, Cost(bytes=request.node.size))
            self._authenticator.accept_node(self.node_key, request.node)
            self._node = request.node
        check(LimitKind.TYPE_URL, len(request.type_url), self._limits.type_url_characters)
        if self._only_type is not None and not request.type_url:
            request = replace(request, type_url=self._only_type)
        if not request.type_url:
            raise WireError("a request on an aggregated stream lacks type_url")
        if self._only_type is not None and self._only_type != request.type_url:
            raise WireError(f"a stream for {self._only_type} received a request for {request.type_url[:200]}")
        if (response := self._stream.awaiting(request.type_url, request.nonce)) is not None:
            self._observer.answered(self.node_key, response, request.rejection, self._call.number)
            if request.rejection is not None:
                # Take the replacement before this answer can lead to removals: it may need resources that
                # the rejected version did not.
                self._take_newest()
        return request

    def _send(self, make: Callable[[], Iterable[Response]]) -> None:
        """Send the responses that a timer made due; an error ends the call."""
        try:
            self._outbox.extend(make())
            self._watch_gate()
        except Exception as error:  # noqa: BLE001 - each is looked at, and ours are passed on
            self._call.end_by(error)
        else:
            self._push()

    def _watch_gate(self) -> None:
        """Start the warming timer while a response is held back for the client's answer, else stop it."""
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
        self._send(self._stream.on_deadline)

    def _wake(self) -> None:
        """Queue the stream for its turn, because its node has another snapshot."""
        self._waking.wake(self._push)

    def _push(self) -> None:
        """Make and write due responses as far as possible without waiting; an error ends the call."""
        if self._call.is_over:
            return
        try:
            self._write_due()
        except Exception as error:  # noqa: BLE001 - each is looked at, and ours are passed on
            self._call.end_by(error)

    def _write_due(self) -> None:
        """Write due responses, then the responses of a newer snapshot, until a write has to wait."""
        if self._outgoing.is_free():
            while True:
                if not self._outbox:
                    self._take_newest()
                if not self._outbox:
                    self._rest()
                    return
                size = self._write_one(self._outbox.pop(0))
                if not self._outgoing.is_free():
                    break
            awaited = self._outbox or self._room or self._call.leaving or size > FORGOTTEN
            if not (awaited or self._is_behind()):
                return  # no callback needed: the next event of the stream completes the write
        if not self._goes_on:
            self._goes_on = True
            self._outgoing.when_done(self._go_on)

    def _go_on(self, written: object) -> None:
        del written
        self._goes_on = False
        self._push()

    def _rest(self) -> None:
        """Resume reading requests, or end a call that must end, because all responses are written."""
        if self._room is not None:
            self._room.set()
            self._room = None
        if self._call.leaving is not None:
            self._call.end(*self._call.leaving)

    def _is_behind(self) -> bool:
        """Return whether another snapshot was published while responses were waiting.

        Its wake-up is over: nothing but the end of the current write would make the stream look again.
        """
        return self._cache.snapshot(self.node_key, self._call.number) is not self._current

    def _take_newest(self) -> None:
        """Take the current snapshot of the node if it is another one than before."""
        newest = self._cache.snapshot(self.node_key, self._call.number)
        if newest is None:
            self._hold()
            return
        if self._unserved is not None:
            self._unserved.cancel()
            self._unserved = None
        if newest is self._current:
            return
        self._current, self._served = newest, True
        self._outbox.extend(self._stream.on_snapshot(newest))
        self._report_held()
        self._watch_gate()
        self._keep_alive()

    def _report_held(self) -> None:
        for response in self._stream.take_held():
            self._observer.held(self.node_key, response)

    def _keep_alive(self) -> None:
        """Schedule the next heartbeat, at a third of the shortest time to live (N5).

        A scheduled heartbeat is never postponed, however often snapshots change. For example: with 30 s and
        90 s, every 10 s.
        """
        ttl = self._stream.shortest_ttl if isinstance(self._stream, DeltaStream) else None
        due = None if ttl is None else asyncio.get_running_loop().time() + ttl / 3
        if self._heartbeat is not None and (due is None or due < self._heartbeat.when()):
            self._heartbeat.cancel()
            self._heartbeat = None
        if due is not None and self._heartbeat is None:
            self._heartbeat = asyncio.get_running_loop().call_at(due, self._beat)

    def _beat(self) -> None:
        self._heartbeat = None
        if isinstance(self._stream, DeltaStream):
            self._send(self._stream.on_heartbeat)
        self._keep_alive()

    def _write_one(self, response: Response) -> int:
        """Begin to write a response; return its size in bytes."""
        message = self._encoder.known(self._variant, response)
        if message is None:
            began = time.thread_time()
            message = self._encoder.encode(self._variant, response, self._call.bill.account)
            self._call.spent(began)
        if len(message) > LARGE:
            self._observer.large(self.node_key, self._node, response, len(message))
        self._outgoing.begin(message)
        self._sent_at[response.type_url] = time.time()
        self._observer.sent(self.node_key, response, len(message))
        return len(message)

    def _hold(self) -> None:
        """Start the timer to end a stream after `unserved_seconds` without a snapshot of the node."""
        if self._unserved is None:
            loop = asyncio.get_running_loop()
            self._unserved = loop.call_later(self._limits.unserved_seconds, self._end_unserved)

    def _end_unserved(self) -> None:
        self._unserved = None
        if self._cache.snapshot(self.node_key) is None:
            self._call.end(
                StreamEnd.NOT_SERVED,
                f"a configuration for this proxy is missing after {self._limits.unserved_seconds} s",
            )
