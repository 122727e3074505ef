"""The interface between a call and its carrier: a bidirectional stream of messages."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Protocol

Writing = Coroutine[asyncio.Future[None], None, None]
"""A message being written: a coroutine that waits for at most one future, and is complete after it."""


class ClientDisconnected(Exception):
    """The client is gone, and nothing can be written any more."""


class Transport(Protocol):
    """A bidirectional stream of messages.

    A message must not be written while another one is being written, or after a write was cancelled. Code
    that runs for every push uses `receive` and `send`, because an additional coroutine frame for each message
    costs time.
    """

    async def read(self) -> bytes | None:
        """Return the next message; None when the client has finished sending."""

    async def write(self, message: bytes) -> None:
        """Send one message; raise ClientDisconnected if the stream has ended."""

    def receive(self) -> Awaitable[object]:
        """Wait for the next message. A value that is not bytes means that the client has finished sending."""

    def send(self, message: bytes) -> Writing:
        """Return the coroutine that sends one message; stepping it raises the transport's own errors."""
