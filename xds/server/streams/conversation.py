"""One stream at the edge: the value machine between a transport that reads and one that writes.

The reader takes a request at a time, and waits while answers to earlier ones are unsent. What is due is made
and written wherever it becomes known: one response at a time, and from the newest snapshot when nothing else
is to be written. So a slow client delays nobody, and holds at most one pending state.
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
"""A request in hand is in memory twice: gRPC has had it, and Python has it."""


class Conversation:
    """Serves one authenticated stream until `run` returns how it ended."""

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
        self._outbox: list[Response] = []  # nearly always empty, and a deque takes as much as ten of them
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
        """Converse until one side ends it; return why, with details for a log."""
        self._call.outgoing = self._outgoing = MessageWriter(transport)
        watch = self._cache.watch(self.node_key, self._wake)
        self._hold()
        self._call.on_leave = self._push  # between two messages, when all that is due has been written
        self._push()
        try:
            return await self._call.run(self._read(transport))
        finally:
            for timer in (self._unserved, self._deadline, self._heartbeat):
                if timer is not None:
                    timer.cancel()
            self._cache.unwatch(watch)

    def accepted(self, type_url: TypeUrl, name: ResourceName) -> Version | None:
        """Return the version of a resource that the client has taken; None if it never asked for the type."""
        return self._stream.accepted(type_url, name)

    def status(self) -> StreamStatus:
        """Describe the stream as it is now."""
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
        """Describe what the client has of each resource; `snapshot` is what there is for it now."""
        scope = f"stream {self._call.number} ({self._variant}) of {self.node_key}"
        types = (
            TypeResources(c.type_url, self._last_sent(c.type_url), resource_statuses(c, snapshot))
            for c in self._stream.channels
        )
        return StreamDescription(self._node, scope, tuple(types))

    @property
    def node(self) -> Node | None:
        """Who the client says it is; None before its first request."""
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
            del message  # it may be megabytes, and the next may be far off
            while len(self._outbox) >= self._limits.unsent_responses:
                self._room = asyncio.Event()
                await self._room.wait()
        return StreamEnd.CLIENT, ""

    def _acknowledge(self, message: bytes) -> bool:
        """Take the most frequent request in short: an ACK that others have sent as well, and no more.

        Nobody is charged for it: there are no more of them than responses. Says whether it was one.
        """
        request = self._decoder.known(self._variant, message)
        if request is None or (response := self._stream.acknowledged(request)) is None:
            return False
        self._outgoing.is_free()  # what was answered is written: let go of it
        self._observer.answered(self.node_key, response, None, self._call.number)
        return True

    async def _answer_long(self, message: bytes) -> None:
        """Take a long request, one of the client's at a time; it costs as long as it is in hand."""
        bill = self._call.bill
        bill.charge(bytes, Cost(bytes=IN_HAND * len(message)))
        async with self._call.long:
            await self._call.rest()
            found: list[AnyRequest] = []
            began = time.thread_time()
            for piece in pieces(message, self._variant, self._limits):
                found.append(self._decoder.piece(self._variant, piece))
                self._call.spent(began)
                await self._call.pause()
                began = time.thread_time()
            request = joined(found)
            bill.release(bytes)
            self._answer(request, began)

    def _answer(self, request: AnyRequest, began: float) -> None:
        """Take a request, and charge for the time since `began` (time.thread_time)."""
        self._outbox.extend(self._take(request))
        self._watch_gate()
        self._call.spent(began)
        if self._outbox:
            self._write_due()
        else:
            self._outgoing.is_free()  # what was answered is written: let go of it

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
            case _:
                raise TypeError(f"a {self._variant} stream has read a {type(request).__name__}")
        self._call.bill.charge(request.type_url, cost(self._stream.channel(request.type_url)))
        return responses

    def _check(self, names: Collection[ResourceName]) -> None:
        check(LimitKind.NAMES, len(names), self._limits.names_per_certificate)
        check(LimitKind.NAME, longest(names), self._limits.name_characters)

    def _looked_at(self, request: AnyRequest) -> AnyRequest:
        """Check the first request's node (S2, S3, S4) and any request's type (S6), and tell of answers."""
        if self._node is None:
            if request.node is None or not request.node.id:
                raise WireError("the first request has no node.id")
            check(LimitKind.NODE, request.node.size, self._limits.node_bytes)
            self._call.bill.charge(Node, Cost(bytes=request.node.size))
            self._authenticator.accept_node(self.node_key, request.node)
            self._node = request.node
        check(LimitKind.TYPE_URL, len(request.type_url), self._limits.type_url_characters)
        if self._only_type is not None and not request.type_url:
            request = replace(request, type_url=self._only_type)
        if not request.type_url:
            raise WireError("a request on an aggregated stream has no type_url")
        if self._only_type is not None and self._only_type != request.type_url:
            raise WireError(f"a stream for {self._only_type} was asked for {request.type_url[:200]}")
        if (response := self._stream.awaiting(request.type_url, request.nonce)) is not None:
            self._observer.answered(self.node_key, response, request.rejection, self._call.number)
            if request.rejection is not None:
                # What is served instead must be known before the answer leads on to removals: it may need
                # what the rejected one did not.
                self._take_newest()
        return request

    def _send(self, make: Callable[[], Iterable[Response]]) -> None:
        """Send what a timer made due; what goes wrong ends the call."""
        try:
            self._outbox.extend(make())
            self._watch_gate()
        except Exception as error:  # noqa: BLE001 - each is looked at, and ours are passed on
            self._call.end_by(error)
        else:
            self._push()

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
        self._send(self._stream.on_deadline)

    def _wake(self) -> None:
        """Have its turn: there is another snapshot."""
        self._waking.wake(self._push)

    def _push(self) -> None:
        """Make and write what is due, as far as that goes without waiting; what goes wrong ends the call."""
        if self._call.is_over:
            return
        try:
            self._write_due()
        except Exception as error:  # noqa: BLE001 - each is looked at, and ours are passed on
            self._call.end_by(error)

    def _write_due(self) -> None:
        """Write what is due, then what a newer snapshot makes so, until something has to wait."""
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
            if not (self._outbox or self._room or self._call.leaving or size > FORGOTTEN):
                return  # whoever is at work on the stream next finds it written
        if not self._goes_on:
            self._goes_on = True
            self._outgoing.when_done(self._go_on)

    def _go_on(self, written: object) -> None:
        del written
        self._goes_on = False
        self._push()

    def _rest(self) -> None:
        """Nothing is due, and all is written: let the reader go on, or the call end that is to."""
        if self._room is not None:
            self._room.set()
            self._room = None
        if self._call.leaving is not None:
            self._call.end(*self._call.leaving)

    def _take_newest(self) -> None:
        """Take what is to be served now, if that is something else than before."""
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
        self._watch_gate()
        self._keep_alive()

    def _keep_alive(self) -> None:
        """Send word of resources with a time to live three times in the shortest (N5).

        What is to be said in time is not put off by whatever else there is to say meanwhile.
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
        """Begin to write a response; return its size."""
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
        """Wait silently for something to serve: not for ever, whether there ever was anything or not."""
        if self._unserved is None:
            loop = asyncio.get_running_loop()
            self._unserved = loop.call_later(self._limits.unserved_seconds, self._end_unserved)

    def _end_unserved(self) -> None:
        self._unserved = None
        if self._cache.snapshot(self.node_key) is None:
            self._call.end(StreamEnd.NOT_SERVED, f"nothing to serve for {self._limits.unserved_seconds} s")
