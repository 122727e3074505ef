"""A call as gRPC has it: its messages, who makes it, and how it is told why it ended."""

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
    StreamEnd.REFUSED: (grpc.StatusCode.PERMISSION_DENIED, "refused"),
    StreamEnd.INVALID: (grpc.StatusCode.INVALID_ARGUMENT, ""),
    StreamEnd.NOT_SERVED: (grpc.StatusCode.UNAVAILABLE, "nothing to serve yet"),
    StreamEnd.TOO_LARGE: (grpc.StatusCode.RESOURCE_EXHAUSTED, ""),
    StreamEnd.TOO_MANY: (grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams"),
    StreamEnd.NOT_FOUND: (grpc.StatusCode.NOT_FOUND, ""),
    StreamEnd.HELD: (grpc.StatusCode.UNAVAILABLE, "nothing to serve yet"),
    StreamEnd.FAILED: (grpc.StatusCode.INTERNAL, "internal error"),
}
"""What a client is told; endings not listed close the stream with OK."""
_EXPLAINED: Final = (StreamEnd.REFUSED, StreamEnd.HELD)
"""Endings whose detail is a word, which a trailer has: whoever runs the client is to know what to mend."""


class GrpcTransport:
    """A Transport over a grpc.aio handler's context."""

    __slots__ = ("_context",)

    def __init__(self, context: grpc.aio.ServicerContext) -> None:
        self._context = context

    @property
    def receive(self) -> Callable[[], Awaitable[object]]:
        """The context's own; see Transport."""
        return cast("Callable[[], Awaitable[object]]", self._context.read)

    @property
    def send(self) -> Callable[[bytes], Writing]:
        """The context's own; see Transport."""
        return cast("Callable[[bytes], Writing]", self._context.write)

    async def read(self) -> bytes | None:
        """Return the next message, None when the client will send no more."""
        message = await self.receive()
        return message if isinstance(message, bytes) else None

    async def write(self, message: bytes) -> None:
        """Write a message; raise ClientDisconnected if the stream has ended."""
        try:
            await self.send(message)
        except Exception as error:  # grpc raises errors of private types for a stream that has ended
            raise ClientDisconnected from error


async def say(context: grpc.aio.ServicerContext, ending: StreamEnd, detail: str) -> None:
    """Say how a call ended, as the last of its handler.

    `context.abort` would do it by an exception that the context keeps, with all that its frames hold.
    """
    if ending is StreamEnd.SLOW and (task := asyncio.current_task()) is not None:
        # A status would wait behind the data that is not read; a cancelled handler resets the stream.
        task.cancel()
        await asyncio.sleep(0)
    if ending in _STATUS:
        code, words = _STATUS[ending]
        context.set_code(code)
        context.set_details(words or detail)
    date = (("date", formatdate(usegmt=True)),)  # a clock that is wrong explains much
    context.set_trailing_metadata((*date, (REASON, detail)) if ending in _EXPLAINED and detail else date)


def peer_of(context: grpc.aio.ServicerContext) -> Peer:
    """Return who makes a call, by its connection."""
    shown = context.auth_context().get("x509_pem_cert", ())
    return Peer(shown[0] if shown else None, context.peer())
