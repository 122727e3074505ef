"""The discovery server: every method of every service on one port, over mutual TLS.

Each call takes the same path (`_handler`): the guard counts the call, the call waits for a turn, is
authenticated, and then runs inside a `Call`, which charges the cost and ends the call at a limit. A discovery
stream runs a `Conversation` in its call; health and status methods are plain functions.

Two background tasks visit all calls instead of one timer per call, because timers of thousands of calls cost
more: one authenticates clients again, and one ends calls that are too old or have a client that does not
read.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Final
from weakref import WeakKeyDictionary

import grpc
import grpc.aio

from protos.envoy.service.status.v3 import csds_pb2
from xds.budget import Account, Accounts, Excess, LimitKind
from xds.cache import NodeKey, Snapshots
from xds.connections.guard import ConnectionGuard
from xds.discovery import AGGREGATED, CLIENT_STATUS, DISCOVERY, HEALTH, Discovery
from xds.grpc_call import GrpcTransport, set_status
from xds.hooks import (
    AuthenticationUnavailable,
    Authenticator,
    NoObserver,
    Observer,
    Peer,
    Prepare,
    StreamEnd,
    StreamRefused,
)
from xds.limits import Limits, StreamQuota
from xds.protocol.stream import Accepted
from xds.server.auxiliary import check_health, fetch_status, stream_status, watch_health
from xds.server.client_status import client_status
from xds.server.listener import listen, options
from xds.server.node_matching import node_predicate
from xds.server.streams.call import Call, Result, Serve, alone
from xds.server.streams.conversation import Conversation
from xds.server.streams.decoder import Decoder
from xds.server.streams.encoder import Encoder
from xds.server.streams.shutdown_plan import planned_ends
from xds.server.streams.wake_queue import WakeQueue
from xds.server.streams.wakeups import once_for_all
from xds.server.tls import Plaintext, TlsIdentity
from xds.stream_status import StreamStatus
from xds.transport import Transport

SERVICE: Final = AGGREGATED

RECHECK_PAUSE: Final = 0.25
"""Seconds between two batches of clients that are authenticated again; each costs a lookup in a ledger."""

NOTHING_FURTHER: Final[Mapping[tuple[str, str], Serve]] = MappingProxyType({})

AGE_SECONDS: Final = 5.0
"""Encoded responses that were not needed for this long, or up to twice as long, are dropped."""


class AdsServer:
    """Server of a cache's snapshots. All methods must be called on one event loop."""

    def __init__(
        self,
        cache: Snapshots,
        authenticator: Authenticator,
        tls: Callable[[], TlsIdentity] | Plaintext,
        *,
        observer: Observer | None = None,
        limits: Limits | None = None,
        control_plane: str = "meshwright",
        hold_reason: Callable[[NodeKey], str] | None = None,
        further: Mapping[tuple[str, str], Serve] = NOTHING_FURTHER,
        prepare: Prepare | None = None,
    ) -> None:
        """Make a server, not yet listening.

        - `tls` is called at each handshake, so certificates rotate without a restart. Plaintext is for tests,
          and for clients without TLS.
        - `hold_reason` returns one word as the reason for an empty configuration of a node (for example
          `workload-unknown`), or "" for a node with a configuration. A client gets the word from the health
          check of the discovery service.
        - `prepare` is awaited before a new client is authenticated, for data that another server has.
        - `further` are methods of other services, by service and method name. They pass the same
          authentication and limits.
        - `control_plane` is the identifier in every response (rule N4). The identifier must be the same on
          all replicas, because otherwise equal content would not be equal bytes.
        """
        self._cache = cache
        self._authenticator = authenticator
        self._prepare = prepare
        self._tls = tls
        self._observer = observer or NoObserver()
        self._limits = limits or Limits()
        self._hold_reason = hold_reason or (lambda _: "")
        self._further = further
        self._encoder = Encoder(control_plane)
        self._decoder = Decoder()
        self._waking = WakeQueue()
        self._quota = StreamQuota(self._limits)
        self._numbers = itertools.count(1)
        self._accounts = Accounts(self._limits)
        self._long: WeakKeyDictionary[Account, asyncio.Lock] = WeakKeyDictionary()
        self._calls: dict[int, Call] = {}
        self._conversations: dict[int, Conversation] = {}
        self._streams = 0
        self._is_over = False
        self._server: grpc.aio.Server | None = None
        self._guard: ConnectionGuard | None = None
        self._watch: asyncio.Task[None] | None = None
        self._rechecks: asyncio.Task[None] | None = None
        self._sweeps: asyncio.Task[None] | None = None

    async def start(self, address: str) -> int:
        """Listen on `host:port`, for example `[::]:15128`, and return the port.

        Raise ListenError, with the address, on failure.
        """
        self._guard = guard = ConnectionGuard(self._limits, self._observer.ended)
        bounds = [*options(self._limits), ("grpc.max_allowed_incoming_connections", guard.allowed)]
        with once_for_all(asyncio.get_running_loop()):
            self._server = server = grpc.aio.server(interceptors=(guard,), options=bounds)
        server.add_generic_rpc_handlers(self._handlers())
        port = listen(server, address, self._tls, self._accepted)
        await server.start()
        self._rechecks = asyncio.create_task(self._keep_rechecking(), name="xds-rechecks")
        self._sweeps = asyncio.create_task(self._sweep(), name="xds-sweeps")
        self._watch = asyncio.create_task(guard.watch(port), name="xds-connections")
        return int(port)

    async def stop(self, grace: float, spread: float = 0.0) -> None:
        """Refuse new calls and end every call in order, one after another over `spread` seconds.

        The end is spread because all clients connect to another server at the end of their streams, and a
        server that gets all clients of another one at the same moment is overloaded. Until its end, a stream
        is served and checked as before. The function returns when all calls have ended, or `grace` seconds
        after the last one should have. If it is cancelled, call `stop(0.0)` to end the remaining calls.
        """
        if self._server is None:
            return
        stopping = asyncio.create_task(self._server.stop(spread + grace), name="xds-stops")
        try:
            await asyncio.sleep(0)
            await self._end_calls(spread, stopping)
        finally:
            for task in (self._rechecks, self._sweeps, self._watch):
                if task is not None:
                    task.cancel()
        await stopping

    async def _end_calls(self, spread: float, stopping: asyncio.Task[None]) -> None:
        """End every call in order, or until `stopping` has no call left to wait for.

        A call that is admitted meanwhile ends with the last one.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        for planned in planned_ends(self._calls, spread):
            # The pause ends at a time and not after one, so that late wake-ups do not add up.
            if planned.number in self._calls and (left := began + planned.at - loop.time()) > 0:
                await asyncio.wait((stopping,), timeout=left)
            if (call := self._calls.get(planned.number)) is not None:
                call.leave(StreamEnd.SHUTDOWN)
        self._is_over = True
        for call in tuple(self._calls.values()):
            call.leave(StreamEnd.SHUTDOWN)

    def end_oldest(self, count: int, youngest_seconds: float) -> int:
        """End some discovery streams in order, so that their clients connect elsewhere; return how many.

        The oldest of all streams end first. A stream that is younger than `youngest_seconds` goes on, because
        otherwise one client could be moved again and again.
        """
        before, ended = datetime.now(UTC) - timedelta(seconds=youngest_seconds), 0
        for number, conversation in sorted(self._conversations.items()):
            if ended == count or conversation.since > before:
                break
            call = self._calls[number]
            if call.leaving is None:
                call.leave(StreamEnd.MOVED)
                ended += 1
        return ended

    def recheck(self, nodes: AbstractSet[NodeKey] | None = None) -> None:
        """Authenticate all clients again now, or those of some nodes, so that a revocation counts at once."""
        for call in tuple(self._calls.values()):
            if nodes is None or call.node_key in nodes:
                call.recheck(self._authenticator)

    def statuses(self) -> tuple[StreamStatus, ...]:
        """Describe the open streams in the order of their start."""
        return tuple(conversation.status() for _, conversation in sorted(self._conversations.items()))

    def takers(self) -> list[tuple[NodeKey, Accepted]]:
        """Return, for each stream, the node and a function to look up versions accepted by the client."""
        return [
            (conversation.node_key, conversation.accepted) for conversation in self._conversations.values()
        ]

    @property
    def streams(self) -> int:
        """Return the number of open discovery streams."""
        return len(self._conversations)

    @property
    def calls(self) -> int:
        """Return the number of open calls of every method."""
        return len(self._calls)

    @property
    def responses_encoded(self) -> int:
        """Return the number of encoded responses; responses sent from shared bytes do not count."""
        return self._encoder.made

    def _methods(self) -> dict[tuple[str, str], Serve]:
        """Return every gRPC method by service and name; all pass through `_handler`."""
        return {
            **{
                (discovery.service, discovery.method): partial(self._converse, discovery)
                for discovery in DISCOVERY
            },
            (CLIENT_STATUS, "FetchClientStatus"): alone(partial(fetch_status, self._status_of)),
            (CLIENT_STATUS, "StreamClientStatus"): alone(partial(stream_status, self._status_of)),
            (HEALTH, "Check"): alone(partial(check_health, self._hold_reason)),
            (HEALTH, "Watch"): alone(watch_health),
            **self._further,
        }

    def _handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        services: dict[str, dict[str, grpc.RpcMethodHandler]] = {}
        for (service, method), serve in self._methods().items():
            services.setdefault(service, {})[method] = self._handler(serve)
        return tuple(
            grpc.method_handlers_generic_handler(service, handlers) for service, handlers in services.items()
        )

    def _handler(self, serve: Serve) -> grpc.RpcMethodHandler:
        """Return the handler for the calls of a method.

        A method with a single request is served as a stream too. The bytes are the same, but the server
        identifies the client before reading.
        """

        async def handle(peer: Peer, context: grpc.aio.ServicerContext) -> None:
            # At once, because a client may wait for the headers before it sends its first request.
            await context.send_initial_metadata(())
            account = self._accounts.account(peer.certificate)
            wait = self._admitted(peer, account)
            if wait is None:
                await set_status(context, StreamEnd.TOO_MANY, "")
                return
            self._streams += 1
            account.streams += 1
            try:
                ending, detail = await self._let_in(serve, peer, account, wait, context)
            finally:
                self._streams -= 1
                account.streams -= 1
            await set_status(context, ending, detail)

        # No serializers: messages stay bytes. The guard passes the Peer, so that it is built only once.
        return grpc.stream_stream_rpc_method_handler(handle)

    async def _let_in(
        self, serve: Serve, peer: Peer, account: Account, wait: float, context: grpc.aio.ServicerContext
    ) -> Result:
        """Authenticate a call, wait for its turn, and serve the call until the end."""
        try:
            if self._prepare is not None:
                await self._prepare(peer)
            node_key = self._authenticator.authenticate(peer)
        except StreamRefused as refused:
            self._observer.refused(peer, refused.reason)
            return StreamEnd.REFUSED, refused.reason
        except AuthenticationUnavailable as unavailable:
            self._observer.refused(peer, unavailable.reason)
            return StreamEnd.UNAVAILABLE, unavailable.reason
        await asyncio.sleep(wait)
        if self._is_over:
            return StreamEnd.SHUTDOWN, ""
        number = next(self._numbers)
        until = asyncio.get_running_loop().time() + self._limits.age(random.random())  # noqa: S311 - no secret
        call = self._calls[number] = Call(number, node_key, peer, account, self._long, until)
        try:
            return await serve(call, GrpcTransport(context))
        finally:
            call.bill.settle()
            del self._calls[number]
            if call.excess is not None:
                self._observer.exceeded(call.node_key, call.peer, call.excess)

    def _admitted(self, peer: Peer, account: Account) -> float | None:
        """Return the seconds to delay a new call, or None to refuse the call."""
        most = self._limits.streams_per_certificate
        if most is not None and account.streams >= most:
            self._observer.refused(peer, StreamEnd.TOO_MANY)
            self._observer.exceeded(None, peer, Excess(LimitKind.STREAMS, account.streams + 1, most))
            return None
        wait = self._quota.wait(time.monotonic(), self._streams)
        if wait is None:
            self._observer.refused(peer, StreamEnd.TOO_MANY)
            return None
        return max(wait, account.share.wait(asyncio.get_running_loop().time()))

    async def _status_of(
        self, call: Call, request: csds_pb2.ClientStatusRequest
    ) -> csds_pb2.ClientStatusResponse:
        asked = node_predicate(request.node_matchers)
        own = {
            n: conversation
            for n, conversation in self._conversations.items()
            if conversation.node_key == call.node_key
        }
        streams = [
            partial(conversation.described, self._cache.snapshot(call.node_key, number))
            for number, conversation in own.items()
            if asked(conversation.node)
        ]
        return await client_status(
            call, streams, self._limits, contents=not request.exclude_resource_contents
        )

    async def _converse(self, discovery: Discovery, call: Call, transport: Transport) -> Result:
        conversation = Conversation(
            call,
            discovery,
            cache=self._cache,
            encoder=self._encoder,
            decoder=self._decoder,
            authenticator=self._authenticator,
            observer=self._observer,
            limits=self._limits,
            waking=self._waking,
        )
        self._conversations[call.number] = conversation
        self._observer.opened(call.node_key, call.peer, discovery.variant)
        ending, detail = StreamEnd.CLIENT, ""
        try:
            ending, detail = await conversation.run(transport)
        except Exception:
            ending, detail = StreamEnd.FAILED, "an error of ours, raised to the handler"
            raise
        finally:
            del self._conversations[call.number]
            self._observer.closed(call.node_key, call.peer, ending, detail, call.number)
        return ending, detail

    def _accepted(self) -> None:
        self._observer.handshake()
        if self._guard is not None:
            self._guard.accepted()

    async def _keep_rechecking(self) -> None:
        """Authenticate each client again every `recheck_seconds`, spread over this time."""
        seconds = self._limits.recheck_seconds
        rounds = max(1, round(seconds / RECHECK_PAUSE))
        for turn in itertools.cycle(range(rounds)):
            await asyncio.sleep(seconds / rounds)
            for number in [call for call in self._calls if call % rounds == turn]:
                self._calls[number].recheck(self._authenticator)

    async def _sweep(self) -> None:
        """End calls that are too old or have a client that does not read; drop state that is not needed."""
        loop = asyncio.get_running_loop()
        aged = loop.time()
        while True:
            await asyncio.sleep(self._limits.write_seconds / 10)
            now = loop.time()
            for call in tuple(self._calls.values()):
                call.check(self._limits, now)
            self._accounts.forget(now)
            if now >= aged + AGE_SECONDS:
                self._encoder.age()
                aged = now
