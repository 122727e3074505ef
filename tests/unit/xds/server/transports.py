"""Transport in memory, whose client is controlled by the test."""

import asyncio


class Client:
    """A Transport that completes each write when the test calls `take`."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self._asked: asyncio.Future[bytes | None] | None = None
        self._said: list[bytes | None] = []
        self._writing: asyncio.Future[None] | None = None

    def say(self, message: bytes | None) -> None:
        """Send a message to the server; None ends the messages."""
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(message)
        else:
            self._said.append(message)

    def take(self) -> None:
        """Complete the current write."""
        assert self._writing is not None
        self._writing.set_result(None)

    def break_off(self) -> None:
        """Disconnect during the current write."""
        assert self._writing is not None
        self._writing.set_exception(RuntimeError("the client is gone"))

    @property
    def is_written_to(self) -> bool:
        """Return whether a write is in progress."""
        return self._writing is not None and not self._writing.done()

    async def receive(self) -> bytes | None:
        """Wait for the client's next message."""
        if self._said:
            return self._said.pop(0)
        self._asked = asyncio.get_running_loop().create_future()
        return await self._asked

    async def read(self) -> bytes | None:
        """Wait for the client's next message, as `receive` does."""
        return await self.receive()

    async def send(self, message: bytes) -> None:
        """Write a message, and wait until the test takes it."""
        assert not self.is_written_to
        self._writing = asyncio.get_running_loop().create_future()
        await self._writing
        self.sent.append(message)

    async def write(self, message: bytes) -> None:
        """Write a message, as `send` does."""
        await self.send(message)
