"""The gRPC edge: discovery over mTLS."""

import asyncio
import enum
import ipaddress
import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import grpc
import grpc.aio

from protos.envoy.service.status.v3 import csds_pb2
from xds.cache import Snapshots
from xds.connections.guard import ConnectionGuard
from xds.server.auxiliary import check_health, fetch_status, stream_status, watch_health
from xds.server.budget import Account, Accounts, Bound, Excess
from xds.server.call import Call, Disconnected, Result, Serve, Transport, alone
from xds.server.client_status import client_status
from xds.server.conversation import Conversation
from xds.server.decoder import Decoder
from xds.server.encoder import Encoder
from xds.server.hooks import Authenticator, Ending, Observer, Peer, Refused, Unobserved
from xds.server.limits import Limits, StreamQuota
from xds.server.services import AGGREGATED, CLIENT_STATUS, DISCOVERY, HEALTH, Discovery
from xds.server.status import StreamStatus
from xds.server.waking import Waking

SERVICE: Final = AGGREGATED

RECHECK_PAUSE: Final = 0.25
"""Seconds from some streams whose client is asked for again to others: each costs a look into a ledger."""

_STATUS: Final = {
    Ending.REFUSED: (grpc.StatusCode.PERMISSION_DENIED, "refused"),
    Ending.INVALID: (grpc.StatusCode.INVALID_ARGUMENT, ""),
    Ending.NOT_SERVED: (grpc.StatusCode.UNAVAILABLE, "nothing to serve yet"),
    Ending.TOO_LARGE: (grpc.StatusCode.RESOURCE_EXHAUSTED, ""),
    Ending.TOO_MANY: (grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams"),
    Ending.NOT_FOUND: (grpc.StatusCode.NOT_FOUND, ""),
    Ending.FAILED: (grpc.StatusCode.INTERNAL, "internal error"),
}
"""What a client is told; endings not listed close the stream with OK. No reason of a refusal is in it."""


class ListenError(OSError):
    """The address cannot be listened on."""


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """What the server shows and whom it trusts, as PEM; a client certificate is always demanded.

    grpcio negotiates TLS 1.2 or 1.3; nothing below is offered (a test tries it).
    """

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    trust_bundle: bytes = field(repr=False)


class Plaintext(enum.Enum):
    """The name by which a server without TLS must be asked for; only loopback addresses will do."""

    ON_LOOPBACK = "on loopback"


class AdsServer:
    """Serves a cache's snapshots. Used from one event loop."""

    def __init__(
        self,
        cache: Snapshots,
        authenticator: Authenticator,
        tls: Callable[[], TlsIdentity] | Plaintext,
        *,
        observer: Observer | None = None,
        limits: Limits | None = None,
        control_plane: str = "meshwright",
    ) -> None:
        """Make a server that does not listen yet.

        `tls` is asked at each handshake, so that certificates rotate without a restart; Plaintext is for
        tests, and for clients that know no TLS.
        `control_plane` is the identifier in every response (rule N4); it must be the same on all replicas,
        or equal content would not be equal bytes.
        """
        self._cache = cache
        self._authenticator = authenticator
        self._tls = tls
        self._observer = observer or Unobserved()
        self._limits = limits or Limits()
        self._encoder = Encoder(control_plane)
        self._decoder = Decoder()
        self._waking = Waking()
        self._quota = StreamQuota(self._limits)
        self._numbers = itertools.count(1)
        self._accounts = Accounts(self._limits)
        self._calls: dict[int, Call] = {}
        self._conversations: dict[int, Conversation] = {}
        self._streams = 0
        self._server: grpc.aio.Server | None = None
        self._guard: ConnectionGuard | None = None
        self._watch: asyncio.Task[None] | None = None
        self._rechecks: asyncio.Task[None] | None = None
        self._sweeps: asyncio.Task[None] | None = None

    async def start(self, address: str) -> int:
        """Listen on `host:port` and return the port; raise ListenError, which names the address."""
        self._guard = guard = ConnectionGuard(self._limits, self._observer.ended)
        options = [*_options(self._limits), ("grpc.max_allowed_incoming_connections", guard.allowed)]
        self._server = server = grpc.aio.server(interceptors=(guard,), options=options)
        server.add_generic_rpc_handlers(self._handlers())
        try:
            port = self._listen(server, address)
        except RuntimeError as error:
            raise ListenError(f"cannot listen on {address}: {error}") from error
        await server.start()
        self._rechecks = asyncio.create_task(self._keep_rechecking(), name="xds-rechecks")
        self._sweeps = asyncio.create_task(self._sweep(), name="xds-sweeps")
        self._watch = asyncio.create_task(guard.watch(port), name="xds-connections")
        return int(port)

    async def stop(self, grace: float) -> None:
        """Accept nothing more, end every stream, and return when they have, or after `grace` seconds."""
        if self._server is None:
            return
        if self._rechecks is not None:
            self._rechecks.cancel()
        if self._sweeps is not None:
            self._sweeps.cancel()
        if self._watch is not None:
            self._watch.cancel()
        stopping = asyncio.ensure_future(self._server.stop(grace))
        await asyncio.sleep(0)
        for call in tuple(self._calls.values()):
            call.leave(Ending.SHUTDOWN)
        await stopping

    def recheck(self) -> None:
        """Ask again who every client is, now: a revocation need not wait for the next round."""
        for call in tuple(self._calls.values()):
            call.recheck(self._authenticator)

    def statuses(self) -> tuple[StreamStatus, ...]:
        """Describe the streams there are, in the order they were opened."""
        return tuple(conversation.status() for _, conversation in sorted(self._conversations.items()))

    @property
    def calls(self) -> int:
        """How many calls there are, of every method."""
        return len(self._calls)

    @property
    def responses_encoded(self) -> int:
        """How many responses were encoded; those sent from shared bytes are not counted."""
        return self._encoder.made

    def _methods(self) -> dict[tuple[str, str], Serve]:
        """Return every method there is, by service and name: all go through `_handler`."""
        return {
            **{(each.service, each.method): partial(self._converse, each) for each in DISCOVERY},
            (CLIENT_STATUS, "FetchClientStatus"): alone(partial(fetch_status, self._status_of)),
            (CLIENT_STATUS, "StreamClientStatus"): alone(partial(stream_status, self._status_of)),
            (HEALTH, "Check"): alone(check_health),
            (HEALTH, "Watch"): alone(watch_health),
        }

    def _handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        services: dict[str, dict[str, grpc.RpcMethodHandler]] = {}
        for (service, method), serve in self._methods().items():
            services.setdefault(service, {})[method] = self._handler(serve)
        return tuple(
            grpc.method_handlers_generic_handler(service, handlers) for service, handlers in services.items()
        )

    def _handler(self, serve: Serve) -> grpc.RpcMethodHandler:
        """Return the one path that calls of every method take.

        A method with a single request is served as a stream, too: the same on the wire, but nothing of it is
        read before the client is known.
        """

        async def handle(requests: object, context: grpc.aio.ServicerContext) -> None:
            del requests
            # Eagerly: a client may wait for the headers before its first request.
            await context.send_initial_metadata(())
            peer = _peer(context)
            account = self._accounts.of(peer.certificate)
            wait = self._admitted(peer, account)
            if wait is None:
                await _say(context, Ending.TOO_MANY, "")
                return
            self._streams += 1
            account.streams += 1
            try:
                ending, detail = await self._let_in(serve, peer, account, wait, context)
            finally:
                self._streams -= 1
                account.streams -= 1
            await _say(context, ending, detail)

        # No serializers: bytes come in and go out as they are.
        return grpc.stream_stream_rpc_method_handler(handle)

    async def _let_in(
        self, serve: Serve, peer: Peer, account: Account, wait: float, context: grpc.aio.ServicerContext
    ) -> Result:
        """Serve a call of a client that is known, from its turn until it ends, for one reason or another."""
        try:
            node_key = self._authenticator.authenticate(peer)
        except Refused as refused:
            self._observer.refused(peer, refused.reason)
            return Ending.REFUSED, ""
        await asyncio.sleep(wait)
        number = next(self._numbers)
        call = self._calls[number] = Call(number, node_key, peer, account)
        seconds = self._limits.age(random.random())  # noqa: S311 - no secret
        age = asyncio.get_running_loop().call_later(seconds, call.leave, Ending.AGED)
        try:
            return await serve(call, _GrpcTransport(context))
        finally:
            age.cancel()
            call.bill.settle()
            del self._calls[number]
            if call.excess is not None:
                self._observer.exceeded(call.node_key, call.peer, call.excess)

    def _admitted(self, peer: Peer, account: Account) -> float | None:
        """Return how many seconds a call has to wait for its turn, or None if it is turned away."""
        most = self._limits.streams_per_certificate
        if most is not None and account.streams >= most:
            self._observer.refused(peer, Ending.TOO_MANY)
            self._observer.exceeded(None, peer, Excess(Bound.STREAMS, account.streams + 1, most))
            return None
        wait = self._quota.wait(time.monotonic(), self._streams)
        if wait is None:
            self._observer.refused(peer, Ending.TOO_MANY)
            return None
        return max(wait, account.share.wait(asyncio.get_running_loop().time()))

    async def _status_of(
        self, call: Call, request: csds_pb2.ClientStatusRequest
    ) -> csds_pb2.ClientStatusResponse:
        return await client_status(
            call,
            [each.status for each in self._conversations.values() if each.node_key == call.node_key],
            self._cache.snapshot(call.node_key),
            self._limits,
            contents=not request.exclude_resource_contents,
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
        ending, detail = Ending.CLIENT, ""
        try:
            ending, detail = await conversation.run(transport)
        except Exception:
            ending, detail = Ending.FAILED, "an error of ours, raised to the handler"
            raise
        finally:
            del self._conversations[call.number]
            self._observer.closed(call.node_key, call.peer, ending, detail)
        return ending, detail

    def _listen(self, server: grpc.aio.Server, address: str) -> int:
        if not isinstance(self._tls, Plaintext):
            return int(
                server.add_secure_port(address, self._credentials(self._tls, asyncio.get_running_loop()))
            )
        try:
            is_loopback = ipaddress.ip_address(address.rpartition(":")[0].strip("[]")).is_loopback
        except ValueError:
            is_loopback = False
        if not is_loopback:
            raise ListenError(f"without TLS only a loopback address can be listened on, not {address}")
        return int(server.add_insecure_port(address))

    def _credentials(
        self, tls: Callable[[], TlsIdentity], loop: asyncio.AbstractEventLoop
    ) -> grpc.ServerCredentials:
        shown = tls()

        def configuration() -> Any:  # noqa: ANN401 (grpc has no types)
            return grpc.ssl_server_certificate_configuration(
                [(shown.key, shown.chain)], root_certificates=shown.trust_bundle
            )

        def fetch() -> Any:  # noqa: ANN401 (grpc has no types)
            nonlocal shown
            loop.call_soon_threadsafe(self._accepted)
            identity = tls()
            if identity == shown:
                # No change, and said so: gRPC would replace its TLS context at each handshake, which is
                # dear, and not safe while another handshake begins (grpc/grpc#36693: it can crash).
                return None
            shown = identity
            return configuration()

        return grpc.dynamic_ssl_server_credentials(configuration(), fetch, require_client_authentication=True)

    def _accepted(self) -> None:
        self._observer.handshake()
        if self._guard is not None:
            self._guard.accepted()

    async def _keep_rechecking(self) -> None:
        """Ask again who each client is, every `recheck_seconds`: each at its own moment, not all at once."""
        seconds = self._limits.recheck_seconds
        rounds = max(1, round(seconds / RECHECK_PAUSE))
        for turn in itertools.count():
            await asyncio.sleep(seconds / rounds)
            for number in [each for each in self._calls if each % rounds == turn % rounds]:
                self._calls[number].recheck(self._authenticator)

    async def _sweep(self) -> None:
        """End calls whose client does not read: asked of all from time to time, not timed per write."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._limits.write_seconds / 20)
            for call in tuple(self._calls.values()):
                call.check_writing(self._limits)
            self._accounts.forget(loop.time())


class _GrpcTransport:
    """A Transport over a grpc.aio handler's context."""

    def __init__(self, context: grpc.aio.ServicerContext) -> None:
        self._context = context

    async def read(self) -> bytes | None:
        message = await self._context.read()
        return None if message is grpc.aio.EOF else message

    async def write(self, message: bytes) -> None:
        try:
            await self._context.write(message)
        except Exception as error:  # grpc raises errors of private types for a stream that has ended
            raise Disconnected from error


async def _say(context: grpc.aio.ServicerContext, ending: Ending, detail: str) -> None:
    """Say how a call ended, as the last of its handler.

    `context.abort` would do it by an exception that the context keeps, with all that its frames hold.
    """
    if ending is Ending.SLOW and (task := asyncio.current_task()) is not None:
        # A status would wait behind the data that is not read; a cancelled handler resets the stream.
        task.cancel()
        await asyncio.sleep(0)
    if ending in _STATUS:
        code, words = _STATUS[ending]
        context.set_code(code)
        context.set_details(words or detail)


def _peer(context: grpc.aio.ServicerContext) -> Peer:
    shown = context.auth_context().get("x509_pem_cert", ())
    return Peer(shown[0] if shown else None, context.peer())


def _options(limits: Limits) -> list[tuple[str, int]]:
    """Return gRPC's options. What is refused by these is refused in its own threads, and costs little."""
    at_once = limits.streams_per_certificate
    return [
        # Twice what the client may have: others may be just ending. gRPC counts a stream that was reset until
        # it has let go of it, and refuses more (it is `grpc.http.overload_protection`, on by default).
        ("grpc.max_concurrent_streams", 2**31 - 1 if at_once is None else 2 * at_once),
        # A reset is answered by a ping, and until that is answered fewer streams may be opened.
        ("grpc.http2.ping_on_rst_stream_percent", 100),
        ("grpc.server_handshake_timeout_ms", round(limits.handshake_seconds * 1000)),
        ("grpc.so_reuseport", 0),  # a second server on the port is an error, not a share of the clients
        ("grpc.max_receive_message_length", limits.request_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.http2.bdp_probe", 0),
        # A storm of new streams waits for its turn: by default, beyond 1000 some are cancelled at random.
        ("grpc.server.max_pending_requests", limits.streams or 2**31 - 1),
        ("grpc.server.max_pending_requests_hard_limit", limits.streams or 2**31 - 1),
        # S14: with the defaults, idle streams whose client pings are ended ("too many pings").
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
