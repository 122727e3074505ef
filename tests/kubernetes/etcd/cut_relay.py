"""Relay of TCP connections to one member, whose network a test cuts, silences and heals."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from meshwright.etcd.access import Endpoint
from tools.real_parts.keys import LOOPBACK

_CHUNK = 65536
_CHUNKS = 64


class Relay:
    """A relay on a port of its own.

    Connections are ended by `cut`, and stay open by `silence` and `lose_answers`. `delay` is the time in
    seconds by which each answer is late.
    """

    def __init__(self, target: Endpoint) -> None:
        self._target = target
        self._requests_pass, self._answers_pass = asyncio.Event(), asyncio.Event()
        self._requests_pass.set()
        self._answers_pass.set()
        self._refuses = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self.connections = self.cuts = 0
        self.delay = 0.0
        self.port = 0

    @property
    def endpoint(self) -> Endpoint:
        """Return the relay's endpoint for a client."""
        return Endpoint(LOOPBACK, self.port, self._target.tls)

    def turn_to(self, target: Endpoint) -> None:
        """Connect to another member from now on."""
        self._target = target

    def cut(self) -> None:
        """End all connections, and every new one at once."""
        self._refuses = True
        self.cuts += len(self._writers)
        for writer in self._writers:
            writer.transport.abort()

    def silence(self) -> None:
        """Pass no bytes any more, in either direction, while all connections stay open."""
        self._requests_pass.clear()
        self._answers_pass.clear()

    def lose_answers(self) -> None:
        """Pass requests alone, while all connections stay open."""
        self._answers_pass.clear()

    def heal(self) -> None:
        """Pass bytes, and take connections again."""
        self._refuses = False
        self._requests_pass.set()
        self._answers_pass.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection until either side ends it."""
        if (task := asyncio.current_task()) is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        if self._refuses:
            writer.transport.abort()
            return
        with contextlib.suppress(OSError):
            ahead, back = await asyncio.open_connection(self._target.host, self._target.port)
            self._writers |= {writer, back}
            self.connections += 1
            passing = [
                asyncio.create_task(_pass(reader, back, self._requests_pass, lambda: 0.0)),
                asyncio.create_task(_pass(ahead, writer, self._answers_pass, lambda: self.delay)),
            ]
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)
            self._writers -= {writer, back}
            back.transport.abort()
        writer.transport.abort()

    async def close(self) -> None:
        """End all connections, and wait until they are closed."""
        self.heal()
        self.cut()
        await asyncio.gather(*self._serving)


async def _pass(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    may_pass: asyncio.Event,
    delay: Callable[[], float],
) -> None:
    """Pass what is read, each chunk `delay` seconds after its arrival, until the end of the connection."""
    clock = asyncio.get_running_loop().time
    chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS)

    async def read() -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await chunks.put((clock(), chunk))
        await chunks.put((clock(), b""))

    reading = asyncio.create_task(read())
    try:
        while chunk := (item := await chunks.get())[1]:
            await may_pass.wait()
            await asyncio.sleep(max(0.0, item[0] + delay() - clock()))
            writer.write(chunk)
            await writer.drain()
    finally:
        reading.cancel()


@contextlib.asynccontextmanager
async def relay_to(endpoint: Endpoint, host: str = LOOPBACK, port: int = 0) -> AsyncIterator[Relay]:
    """Run a relay to a member until the end of the block, at a free port unless one is given."""
    made = Relay(endpoint)
    server = await asyncio.start_server(made.serve, host, port)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        await made.close()
        server.close()
        await server.wait_closed()
