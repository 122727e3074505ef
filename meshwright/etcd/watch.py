"""A watch of etcd: events from a revision on, and the progress of a member without events.

A watch of etcd may be silent for ever: after a cut without a packet, and from a revision in the future of a
restored store. A silent watch therefore asks for progress, and ends without an answer.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from meshwright.etcd.errors import (
    EtcdError,
    RefusedError,
    RevisionGoneError,
    TokenError,
    UnavailableError,
    failures_as_errors,
    shortened,
)
from meshwright.etcd.members import Stream
from meshwright.etcd.values import KeyValue, Position, Span
from protos.meshwright.etcd.v3 import etcd_pb2 as pb

_TOKEN: Final = "invalid auth token"  # noqa: S105 - a message
_DENIED: Final = "permission denied"


@dataclass(frozen=True, slots=True)
class Events:
    """Changes of keys in order: a key with the new content, or the name of a deleted key.

    `revision` is the position after the changes, or the progress of a watch without changes.
    """

    revision: int
    changes: tuple[KeyValue | bytes, ...] = ()


class Watch:
    """One watch at one member: a stream, which the owner cancels."""

    def __init__(
        self, call: Stream[pb.WatchRequest, pb.WatchResponse], endpoint: str, quiet: float, answer: float
    ) -> None:
        self._call = call
        self._endpoint = endpoint
        self._quiet = quiet
        self._answer = answer
        self.position = Position(0, 0, 0)

    async def begin(self, span: Span, revision: int) -> None:
        """Create the watch, and set the position of the member; raise EtcdError.

        The position is the member's own, and may be ahead of later events of the watch.
        """
        request = pb.WatchCreateRequest(
            key=span.start, range_end=span.end, start_revision=revision, progress_notify=True
        )
        async with self._patience():
            await self._send(pb.WatchRequest(create_request=request))
            response = await self._receive()
        self.position = Position.of(response.header)
        if response.canceled:
            raise self._cancelled(response)

    async def events(self) -> Events:
        """Wait for the next events or progress; raise EtcdError where the watch is over."""
        while True:
            response = await self._next()
            if response.canceled:
                raise self._cancelled(response)
            if response.events:
                changes = tuple(
                    event.kv.key if event.type == pb.Event.DELETE else KeyValue.of(event.kv)
                    for event in response.events
                )
                return Events(response.events[-1].kv.mod_revision, changes)
            if not response.created:
                return Events(response.header.revision)

    async def _next(self) -> pb.WatchResponse:
        """Return the next response, if need be after a question for the progress."""
        reading = asyncio.ensure_future(self._receive())
        try:
            await asyncio.wait((reading,), timeout=self._quiet)
            if not reading.done():
                async with self._patience():
                    await self._send(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))
                    await asyncio.wait((reading,))
            return await reading
        finally:
            if not reading.done():
                reading.cancel()
                await asyncio.wait((reading,))

    @asynccontextmanager
    async def _patience(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._answer):
                yield
        except TimeoutError:
            raise UnavailableError(f"etcd at {self._endpoint} is silent on a watch") from None

    async def _send(self, message: pb.WatchRequest) -> None:
        with failures_as_errors("Watch", self._endpoint):
            await self._call.write(message)

    async def _receive(self) -> pb.WatchResponse:
        with failures_as_errors("Watch", self._endpoint):
            response = await self._call.read()
        if not isinstance(response, pb.WatchResponse):
            raise UnavailableError(f"etcd at {self._endpoint} has ended the watch")
        return response

    def _cancelled(self, response: pb.WatchResponse) -> EtcdError:
        reason = shortened(response.cancel_reason)
        sentence = f"etcd at {self._endpoint} has cancelled a watch: {reason or 'without a reason'}"
        if response.compact_revision:
            return RevisionGoneError(f"{sentence} (compacted up to revision {response.compact_revision})")
        if _TOKEN in reason:
            return TokenError(sentence)
        if _DENIED in reason:
            return RefusedError(sentence)
        return UnavailableError(sentence)
