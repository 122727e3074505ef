"""A transport in memory: what a client would do is done by the test."""

import asyncio


class Client:
    """A Transport whose messages are written when `take` is called; counts what is asked of it."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self._asked: asyncio.Future[bytes | None] | None = None
        self._said: list[bytes | None] = []
        self._writing: asyncio.Future[None] | None = None

    def say(self, message: bytes | None) -> None:
        """Send a message to the server; None is the last."""
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(message)
        else:
            self._said.append(message)

    def take(self) -> None:
        """Take in what is being written."""
        assert self._writing is not None
        self._writing.set_result(None)

    def break_off(self) -> None:
        """Go, in the midst of what is being written."""
        assert self._writing is not None
        self._writing.set_exception(RuntimeError("the client is gone"))

    @property
    def is_written_to(self) -> bool:
        """Say whether something is being written."""
        return self._writing is not None and not self._writing.done()

    async def receive(self) -> bytes | None:
        """Wait for what the client says next."""
        if self._said:
            return self._said.pop(0)
        self._asked = asyncio.get_running_loop().create_future()
        return await self._asked

    async def read(self) -> bytes | None:
        """Do the same."""
        return await self.receive()

    async def send(self, message: bytes) -> None:
        """Write, until it is taken."""
        assert not self.is_written_to
        self._writing = asyncio.get_running_loop().create_future()
        await self._writing
        self.sent.append(message)

    async def write(self, message: bytes) -> None:
        """Do the same."""
        await self.send(message)
