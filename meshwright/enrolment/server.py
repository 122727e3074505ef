"""gRPC edge of enrolment: the joining port with TLS, and the renewal port with mTLS.

Connections have the same limits as in discovery (`xds.connections`). Clients get only the necessary
information, because anyone can reach the joining port.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from functools import partial
from typing import Final

import grpc
import grpc.aio

from certs.errors import CertificateError, RequestError
from meshwright.enrolment.faults import Faults
from meshwright.enrolment.limits import EnrolmentLimits, LimitExhausted
from meshwright.enrolment.proofs.contract import ProofPending, ProofRefused, ProofUndecided
from meshwright.enrolment.reports import BadReport
from xds.connections.guard import ConnectionGuard
from xds.discovery import REASON
from xds.hooks import Cause, Peer
from xds.limits import Limits
from xds.server.listener import listen, options
from xds.server.streams.wakeups import once_for_all
from xds.server.tls import TlsIdentity

Answer = Callable[[bytes, Peer], Awaitable[bytes]]
"""Handler from the bytes of a request to the bytes of the response; raises the errors listed in `_status`."""

_RESULTS: Final = {
    grpc.StatusCode.OK: "ok",
    grpc.StatusCode.PERMISSION_DENIED: "refused",
    grpc.StatusCode.INVALID_ARGUMENT: "invalid",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "too-many",
    grpc.StatusCode.UNAVAILABLE: "unavailable",
    grpc.StatusCode.DEADLINE_EXCEEDED: "late",
    grpc.StatusCode.INTERNAL: "failed",
}


class UnreadableRequest(ValueError):
    """Error for an enrolment request that cannot be decoded as the message of the called method."""


class NoRequest(Exception):
    """Error for an enrolment call in which the client sends no request in time."""


REFUSALS: Final = (ProofRefused, RequestError, UnreadableRequest, BadReport, NoRequest, LimitExhausted)
"""Errors caused by the client, and already logged by the refusing service."""


class EnrolmentPort:
    """gRPC server of one enrolment port; all methods are unary. To be used from one event loop.

    `counted` receives the method and the result of each finished call, for example `("Join", "refused")`.
    """

    def __init__(
        self,
        service: str,
        methods: Mapping[str, Answer],
        tls: Callable[[], TlsIdentity],
        limits: EnrolmentLimits,
        counted: Callable[[str, str], None],
    ) -> None:
        self._counted = counted
        self._service = service
        self._methods = methods
        self._tls = tls
        self._limits = limits
        self._faults = Faults()
        self._under_way: set[asyncio.Task[bytes]] = set()
        self._server: grpc.aio.Server | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self, at: str) -> int:
        """Listen on `at` (`host:port`) and return the port. Raises `xds.server.listener.ListenError`."""
        bounds = _bounds(self._limits)
        guard = ConnectionGuard(bounds, self._ended)
        allowed = ("grpc.max_allowed_incoming_connections", guard.allowed)
        with once_for_all(asyncio.get_running_loop()):
            server = grpc.aio.server(interceptors=(guard,), options=[*options(bounds), allowed])
        handlers = {
            name: grpc.stream_stream_rpc_method_handler(partial(self._handle, name, answer))
            for name, answer in self._methods.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(self._service, handlers),))
        port = listen(server, at, self._tls, guard.accepted)
        await server.start()
        self._server = server
        self._watch = asyncio.create_task(guard.watch(port), name="enrolment-connections")
        return port

    async def stop(self, grace: float) -> None:
        """Stop accepting calls; return when running calls are answered, or after `grace` seconds."""
        if self._server is None:
            return
        if self._watch is not None:
            self._watch.cancel()
        # Calls may outlive their connection, so they get the grace period as well.
        await self._server.stop(grace)
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=grace)
            for work in late:
                work.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._faults.flush()

    async def _handle(
        self, method: str, answer: Answer, peer: Peer, context: grpc.aio.ServicerContext
    ) -> None:
        code, words, reason = grpc.StatusCode.OK, "", ""
        try:
            request = await self._request(context)
            await context.write(await self._answered(answer, request, peer))
        except Exception as error:  # noqa: BLE001 - each has its status, and ours are logged
            code, words, reason = _status(error)
            self._log_failure(error)
        self._counted(method, _RESULTS[code])
        date = (("date", formatdate(usegmt=True)),)  # lets the client see that its clock is wrong
        context.set_code(code)
        context.set_details(words)
        # Only a client with one of our certificates gets the reason; strangers must not learn it.
        known = reason and peer.certificate is not None
        context.set_trailing_metadata((*date, (REASON, reason)) if known else date)

    async def _request(self, context: grpc.aio.ServicerContext) -> bytes:
        """Return the request message of a call; raise NoRequest or UnreadableRequest."""
        try:
            async with asyncio.timeout(self._limits.call_seconds):
                request = await context.read()
        except TimeoutError as error:
            raise NoRequest from error
        if not isinstance(request, bytes):
            raise UnreadableRequest("the call ended without a request")
        return request

    async def _answered(self, answer: Answer, request: bytes, peer: Peer) -> bytes:
        """Complete a request even if the client disconnects, so used parts of a proof are given back."""
        if len(self._under_way) >= self._limits.under_way:
            raise LimitExhausted("all calls under way")
        work = asyncio.ensure_future(answer(request, peer))
        work.set_name(f"{self._service.rpartition('.')[2].lower()}-request")
        self._under_way.add(work)
        work.add_done_callback(self._under_way.discard)
        try:
            # A cancelled call must not stop half-way between using a token and signing.
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(self._log_unheard)
            raise

    def _log_unheard(self, work: asyncio.Task[bytes]) -> None:
        """Log a server failure in a request from a client that has disconnected meanwhile."""
        if not work.cancelled() and isinstance(error := work.exception(), Exception):
            self._log_failure(error)

    def _log_failure(self, error: Exception) -> None:
        if not isinstance(error, REFUSALS):
            self._faults.failed(error)

    def _ended(self, peer: Peer, cause: Cause) -> None:
        self._faults.ended(peer.address, cause.value)


def _status(error: Exception) -> tuple[grpc.StatusCode, str, str]:
    """Return the status, message and reason for a client; the reason is only sent to known clients."""
    match error:
        case ProofRefused():
            return (
                grpc.StatusCode.PERMISSION_DENIED,
                "the request is refused: see the log of the control plane",
                error.reason,
            )
        case RequestError() | UnreadableRequest() | BadReport():
            return grpc.StatusCode.INVALID_ARGUMENT, str(error), ""
        case NoRequest():
            return grpc.StatusCode.DEADLINE_EXCEEDED, "the call did not send a request in time", ""
        case LimitExhausted():
            return grpc.StatusCode.RESOURCE_EXHAUSTED, "too many requests: try again later", ""
        case ProofPending():
            return grpc.StatusCode.UNAVAILABLE, "the proof cannot be verified now: try again later", ""
        case ProofUndecided():
            return grpc.StatusCode.UNAVAILABLE, "the proof cannot be verified now: try again later", ""
        case CertificateError():
            return grpc.StatusCode.UNAVAILABLE, "certificates cannot be signed now: try again later", ""
        case _:
            return grpc.StatusCode.INTERNAL, "internal error of the control plane: see its log", ""


def _bounds(limits: EnrolmentLimits) -> Limits:
    """Return the connection limits of the enrolment ports; a client makes few and short calls."""
    return Limits(
        request_bytes=limits.request_bytes,
        streams=4 * limits.under_way,
        streams_per_certificate=4,
        unserved_seconds=limits.call_seconds,
        connections=limits.connections,
        idle_connections=limits.idle_connections,
        idle_seconds=30.0,
        idle_bytes=64 * 1024,
        calls_at_once=20,
        calls_per_second=1.0,
        received_bytes_per_second=64 * 1024,
    )
