"""What a call needs of whatever carries it: a bidirectional stream of messages."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Protocol

Writing = Coroutine[asyncio.Future[None], None, None]
"""A message that is being written: it waits for one future at most, and is written with that."""


class ClientDisconnected(Exception):
    """The client is gone; nothing can be written any more."""


class Transport(Protocol):
    """A bidirectional stream of messages. Nothing may be written while something is, or after it was cut off.

    What goes on for every push uses the transport's own coroutines, without a frame of ours around them.
    """

    async def read(self) -> bytes | None:
        """Return the next message, or None when the client has sent its last."""

    async def write(self, message: bytes) -> None:
        """Send one message; raise ClientDisconnected."""

    def receive(self) -> Awaitable[object]:
        """Wait for the next message; what is not bytes says that the client has sent its last."""

    def send(self, message: bytes) -> Writing:
        """Return what sends one message when it is stepped; it raises errors of the transport's own."""
