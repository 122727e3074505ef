"""The database: a TCP server that sends the first message, as MySQL does, and counts inserts."""

import asyncio
import contextlib

from demo.apps import wire
from demo.apps.counters import Counters


class Database:
    """Server for INSERT, PING and QUIT; inserts are counted by token, or by title without a token."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    async def serve(self, host: str, port: int) -> None:
        """Start listening; the server accepts connections when this method returns."""
        self._server = await asyncio.start_server(self._accept, host, port)

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._conversation(reader, writer))
        self._conversations.add(task)
        task.add_done_callback(self._conversations.discard)

    async def _conversation(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(wire.packet(0, wire.GREETING))
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while answer := self._answer(await wire.read_packet(reader)):
                    writer.write(wire.packet(1, answer))
                    await writer.drain()
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _answer(self, command: bytes) -> bytes:
        """Return the response to a client's command; empty if the connection must be closed."""
        match command[:1]:
            case b"\x03":
                return self._query(command[1:].decode(errors="replace").split())
            case b"\x0e":
                return wire.OK_ANSWER
            case b"\x01" | b"":
                return b""
            case _:
                return wire.refusal("unknown command")

    def _query(self, words: list[str]) -> bytes:
        match words:
            case ["INSERT", title]:
                self._counters.serve(title)
            case ["INSERT", title, token]:
                self._counters.serve(title, token)
            case _:
                return wire.refusal("unknown query: expected INSERT <title> or INSERT <title> <token>")
        return wire.OK_ANSWER
