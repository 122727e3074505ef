"""What a stream sends: one message at a time, begun and ended by whoever is at work on the stream anyway.

A task that waits for each message to be written would be woken twice for it: when there is one, and when it
has gone. So the coroutine that writes is stepped by hand: begun when a message is due, and gone on with when
the next is, or when the client answers.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from xds.transport import ClientDisconnected, Transport, Writing

FORGOTTEN: Final = 4096
"""Bytes of a message that may stay in memory until somebody asks; a longer one is let go when it has gone."""


class MessageWriter:
    """Writes messages to a transport, one at a time."""

    __slots__ = ("_loop", "_transport", "_waits_for", "_writing", "_writing_since")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._writing: Writing | None = None
        self._waits_for: asyncio.Future[None] | None = None
        self._writing_since = 0.0

    def begin(self, message: bytes) -> None:
        """Begin to write a message; to be called only when it is free. Raises ClientDisconnected."""
        self._writing = self._transport.send(message)
        self._writing_since = self._loop.time()
        self._step()

    def is_free(self) -> bool:
        """Say whether the message before is written; raise ClientDisconnected if it could not be."""
        if self._waits_for is None:
            return True
        if not self._waits_for.done():
            return False
        self._step()
        return self._waits_for is None

    def when_done(self, work: Callable[[object], None]) -> None:
        """Have something done, which must not raise, when what is being written has got on."""
        if self._waits_for is not None:
            self._waits_for.add_done_callback(work)

    @property
    def since(self) -> float | None:
        """When the message was begun that is being written, on the loop's clock; None if there is none."""
        return None if self._waits_for is None or self._waits_for.done() else self._writing_since

    def close(self) -> None:
        """Write no more; what is being written is cut off, and spoils the stream."""
        waits_for, self._waits_for = self._waits_for, None
        writing, self._writing = self._writing, None
        if waits_for is not None and writing is not None:
            if not waits_for.cancel() and not waits_for.cancelled():
                waits_for.exception()  # looked at: it is no news that the client is gone
            writing.close()

    def _step(self) -> None:
        if self._writing is None:
            return
        try:
            self._waits_for = self._writing.send(None)
        except StopIteration:
            self._writing = self._waits_for = None
        except Exception as error:  # grpc raises errors of private types for a stream that has ended
            self._writing = self._waits_for = None
            raise ClientDisconnected from error
