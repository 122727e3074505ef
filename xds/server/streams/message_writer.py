"""Writer of a stream's messages, one at a time, without a task of its own.

A task that waits for each message would be woken twice per message: when there is one, and when it has been
written. Instead the writing coroutine is stepped by hand: first when a message is due, and again when the
next one is due or the client answers.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from xds.transport import ClientDisconnected, Transport, Writing

FORGOTTEN: Final = 4096
"""Bytes of a written message that may stay in memory until the next event; a longer one is freed at once."""


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
        """Begin to write a message. The writer must be free; raises ClientDisconnected."""
        self._writing = self._transport.send(message)
        self._writing_since = self._loop.time()
        self._step()

    def is_free(self) -> bool:
        """Return whether the last message is written; raise ClientDisconnected if that failed."""
        if self._waits_for is None:
            return True
        if not self._waits_for.done():
            return False
        self._step()
        return self._waits_for is None

    def when_done(self, work: Callable[[object], None]) -> None:
        """Call `work`, which must not raise, when the current write has made progress."""
        if self._waits_for is not None:
            self._waits_for.add_done_callback(work)

    @property
    def since(self) -> float | None:
        """Return the start of the current write on the loop's clock; None if there is none."""
        return None if self._waits_for is None or self._waits_for.done() else self._writing_since

    def close(self) -> None:
        """Cancel the current write, which makes the stream unusable. Nothing can be written afterwards."""
        waits_for, self._waits_for = self._waits_for, None
        writing, self._writing = self._writing, None
        if waits_for is not None and writing is not None:
            if not waits_for.cancel() and not waits_for.cancelled():
                waits_for.exception()  # retrieved, so that asyncio logs no warning; the client is gone
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
