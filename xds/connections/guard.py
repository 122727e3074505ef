"""Guard over a server's connections: counts the calls on each, and ends connections that cost too much."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import grpc
import grpc.aio

from xds.connections.sockets import AcceptedSockets, address, descriptors_for_clients
from xds.connections.table import SILENT_PART, Connections, Socket, Verdict
from xds.grpc_call import peer_of
from xds.hooks import Cause, Peer
from xds.limits import Limits

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at the sockets; fewer after many new connections or a client beyond its limit."""
LOOKING_PART: Final = 0.005
"""Greatest fraction of one CPU for looking. After a long look the next one follows later."""
LONGEST_SECONDS: Final = 4.0
"""Upper bound on the seconds between two looks."""
PAUSE_SECONDS: Final = 0.05
"""Least seconds between two looks."""
AT_ONCE: Final = 100
"""Connections ended in one batch. Before the next batch each verdict is checked again."""


class ConnectionGuard(grpc.aio.ServerInterceptor):  # type: ignore[misc] # grpc has no types
    """A gRPC interceptor to bound the cost of a server's connections.

    `ended` is called for each ended connection.
    """

    def __init__(self, limits: Limits, ended: Callable[[Peer, Cause], None]) -> None:
        self.allowed = min(limits.connections or 2**31 - 1, descriptors_for_clients())
        self._idle = min(limits.idle_connections, self.allowed // 2)
        self._connections = Connections(limits, self._idle)
        self._observed = ended
        self._accepted = 0
        self._wake = asyncio.Event()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler | None]],
        details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler:
        """Count every call of any method, including unknown methods."""
        return self._counted(await continuation(details))

    def accepted(self) -> None:
        """Count an accepted connection. Many in a short time bring the next look forward."""
        self._accepted += 1
        if self._accepted > self._idle // (4 * SILENT_PART):
            self._wake.set()

    async def watch(self, port: int) -> None:
        """End connections on the port that cost too much, until cancelled."""
        sockets, spent = AcceptedSockets(port), 0.0
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), until_next(spent, self._connections.crowded))
            self._wake.clear()
            self._accepted = 0
            now, due = time.monotonic(), self._connections.due()
            try:
                seen, spent = await asyncio.to_thread(_look, sockets, due)
                began = time.thread_time()
                verdicts = self._connections.look(now, seen, due)
                spent += time.thread_time() - began
                await self._carry_out(verdicts, sockets)
            except Exception as error:  # noqa: BLE001 - nothing else limits connections, so the loop goes on
                context = {"message": "cannot look at the connections", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

    async def _carry_out(self, verdicts: Sequence[Verdict], sockets: AcceptedSockets) -> None:
        for begin in range(0, len(verdicts), AT_ONCE):
            standing = [
                verdict
                for verdict in verdicts[begin : begin + AT_ONCE]
                if self._connections.is_still_valid(verdict)
            ]
            for ended in await asyncio.to_thread(_ended, sockets, standing):
                self._observed(ended.peer, ended.cause)

    def _counted(self, handler: grpc.RpcMethodHandler | None) -> grpc.RpcMethodHandler:
        """Wrap a handler with counting of the call.

        Every method is served as a stream of bytes (see AdsServer).

        The handler gets the Peer in place of the request iterator, because requests are read from the
        context.
        """

        async def handle(requests: object, context: grpc.aio.ServicerContext) -> None:
            del requests
            peer = peer_of(context)
            client = address(peer.address)
            try:
                if not self._connections.begun(time.monotonic(), client, peer):
                    self._wake.set()
                    await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls")
                if handler is None:
                    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method")
                else:
                    await handler.stream_stream(peer, context)
            finally:
                self._connections.finished(time.monotonic(), client)

        return grpc.stream_stream_rpc_method_handler(handle)


def until_next(spent: float, crowded: bool = False) -> float:
    """Return the seconds until the next regular look, from the CPU seconds of the last one.

    For example, a look of 0.01 s is followed by a pause of 2 s.

    After too many silent connections in the last look, the next one precedes gRPC's own timeout for
    handshakes, because the timeout does not limit their number.
    """
    if crowded:
        return LOOK_SECONDS
    return min(max(LOOK_SECONDS, spent / LOOKING_PART), LONGEST_SECONDS)


def _look(sockets: AcceptedSockets, due: Iterable[int]) -> tuple[tuple[Socket, ...], float]:
    """Examine due and new connections; return them and the CPU seconds of the look."""
    began = time.thread_time()
    seen = sockets.look(due)
    return seen, time.thread_time() - began


def _ended(sockets: AcceptedSockets, verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if sockets.end(verdict.socket)]
