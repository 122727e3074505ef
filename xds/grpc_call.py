"""One gRPC call: the messages, the peer, and the status at the end."""

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Final, cast

import grpc
import grpc.aio

from xds.discovery import REASON
from xds.hooks import Peer, StreamEnd
from xds.transport import ClientDisconnected, Writing

_STATUS: Final = {
    StreamEnd.REFUSED: (
        grpc.StatusCode.PERMISSION_DENIED,
        "the stream is refused: see the log of the control plane",
    ),
    StreamEnd.INVALID: (grpc.StatusCode.INVALID_ARGUMENT, ""),
    StreamEnd.NOT_SERVED: (grpc.StatusCode.UNAVAILABLE, "the configuration of this proxy is not ready yet"),
    StreamEnd.TOO_LARGE: (grpc.StatusCode.RESOURCE_EXHAUSTED, ""),
    StreamEnd.TOO_MANY: (grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams: try again later"),
    StreamEnd.NOT_FOUND: (grpc.StatusCode.NOT_FOUND, ""),
    StreamEnd.HELD: (grpc.StatusCode.UNAVAILABLE, "the configuration of this proxy is not ready yet"),
    StreamEnd.UNAVAILABLE: (
        grpc.StatusCode.UNAVAILABLE,
        "the control plane cannot look up this certificate now: try again later",
    ),
    StreamEnd.FAILED: (grpc.StatusCode.INTERNAL, "internal error of the control plane: see its log"),
}
"""Status code and details for each ending.

A detail of "" means the ending's own; other endings close with OK.
"""
_EXPLAINED: Final = (StreamEnd.REFUSED, StreamEnd.HELD)
"""Endings with a one-word detail in the trailer REASON, for the client's operator."""


class GrpcTransport:
    """A Transport over the context of a grpc.aio handler."""

    __slots__ = ("_context",)

    def __init__(self, context: grpc.aio.ServicerContext) -> None:
        self._context = context

    @property
    def receive(self) -> Callable[[], Awaitable[object]]:
        """Return the context's own coroutine function; see Transport."""
        return cast("Callable[[], Awaitable[object]]", self._context.read)

    @property
    def send(self) -> Callable[[bytes], Writing]:
        """Return the context's own coroutine function; see Transport."""
        return cast("Callable[[bytes], Writing]", self._context.write)

    async def read(self) -> bytes | None:
        """Return the next message; None when the client has finished sending."""
        message = await self.receive()
        return message if isinstance(message, bytes) else None

    async def write(self, message: bytes) -> None:
        """Write a message; raise ClientDisconnected if the stream has ended."""
        try:
            await self.send(message)
        except Exception as error:  # grpc raises errors of private types for a stream that has ended
            raise ClientDisconnected from error


async def set_status(context: grpc.aio.ServicerContext, ending: StreamEnd, detail: str) -> None:
    """Set the status and trailers of a call. The handler must call this last.

    `context.abort` is not used, because the context would keep the raised exception, and with it all content
    of the traceback's frames.
    """
    if ending is StreamEnd.SLOW and (task := asyncio.current_task()) is not None:
        # A status would queue behind the data that the client does not read. Cancelling resets the stream.
        task.cancel()
        await asyncio.sleep(0)
    if ending in _STATUS:
        code, words = _STATUS[ending]
        context.set_code(code)
        context.set_details(words or detail)
    date = (("date", formatdate(usegmt=True)),)  # shows a wrong clock, a common cause of TLS failures
    context.set_trailing_metadata((*date, (REASON, detail)) if ending in _EXPLAINED and detail else date)


def peer_of(context: grpc.aio.ServicerContext) -> Peer:
    """Return the peer of a call: the verified client certificate of the connection, and the address.

    For example, an address is `ipv4:10.0.3.7:41522`.
    """
    shown = context.auth_context().get("x509_pem_cert", ())
    return Peer(shown[0] if shown else None, context.peer())
