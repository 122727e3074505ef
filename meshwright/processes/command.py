"""Commands that are run to their end, or to ours: nothing of their session runs on, no pipe stays open.

asyncio's own `communicate` ends a command neither at a deadline nor when it is cancelled, and who ends the
command itself waits for whatever that has started and that holds its pipes: a wrapper's program for hours.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1 << 26
"""What is kept of output and of errors, where nobody says otherwise."""

_OUTPUT: Final = 1
_ERRORS: Final = 2


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments; without an environment it has ours, without a folder it runs in ours.

    What is `given` is its standard input; without it there is none to be read. Where `merged`, its errors
    stand in its output, as it wrote them. Of both so many first bytes are kept; the rest is read, and that
    is all.
    """

    argv: Sequence[str]
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    folder: Path | None = None
    given: bytes | None = field(default=None, repr=False)
    merged: bool = False
    most_bytes: int = MOST_BYTES


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended: its status, negative for the signal that ended it, and what it said."""

    status: int
    output: bytes = field(repr=False)
    errors: bytes = field(repr=False)


async def run(command: Command, seconds: float) -> CommandResult:
    """Run a command until it has ended and nobody holds its pipes any more; return how it ended.

    Raises OSError where it cannot be run, TimeoutError after so many seconds. Then, and where it is
    cancelled, it is killed with all that it has started in its session, which is its own: a terminal's
    Ctrl-C does not reach it, and it can ask nobody there.
    """
    said = _CommandOutput(command.most_bytes)
    # A task of its own: who is cancelled amid its start could not end what the command has started by then.
    starting = asyncio.create_task(_started(command, said), name=f"start {command.argv[0]}")
    try:
        async with asyncio.timeout(seconds):
            await asyncio.shield(starting)
            await said.over.wait()
    finally:
        await _end(starting, said)
    status = starting.result().get_returncode()
    assert status is not None  # noqa: S101 - it is over
    return CommandResult(status, said.kept(_OUTPUT), said.kept(_ERRORS))


class _CommandOutput(asyncio.SubprocessProtocol):
    """What a command says, as far as it is kept, and whether it has ended, and is over: its pipes closed."""

    def __init__(self, most: int) -> None:
        self.ended = asyncio.Event()
        self.over = asyncio.Event()
        self._most = most
        self._kept = {_OUTPUT: bytearray(), _ERRORS: bytearray()}

    def kept(self, descriptor: int) -> bytes:
        """Return what came through a pipe."""
        return bytes(self._kept[descriptor])

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep what there is room for."""
        kept = self._kept[fd]
        kept += data[: self._most - len(kept)]

    def process_exited(self) -> None:
        """Know that it has ended; others may hold its pipes."""
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - it tells of no pipe
        """Know that it is over."""
        self.over.set()


async def _started(command: Command, said: _CommandOutput) -> asyncio.SubprocessTransport:
    transport, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: said,
        *command.argv,
        stdin=DEVNULL if command.given is None else PIPE,
        stdout=PIPE,
        stderr=STDOUT if command.merged else PIPE,
        env=command.environment,
        cwd=command.folder,
        start_new_session=True,
    )
    if command.given is not None:
        into = transport.get_pipe_transport(0)
        assert isinstance(into, asyncio.WriteTransport)  # noqa: S101 - as it was asked for
        into.write(command.given)
        into.close()  # when it is written
    return transport


async def _end(starting: "asyncio.Task[asyncio.SubprocessTransport]", said: _CommandOutput) -> None:
    """Kill what still runs of a command, and close its pipes, whoever else holds them."""
    await asyncio.wait([starting])
    if starting.exception() is not None:  # whoever waits for it has it
        return
    transport = starting.result()
    if not said.over.is_set():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(transport.get_pid(), signal.SIGKILL)
    # To close what has not ended is to ask for its end, which asyncio, who waits for it as well, then misses.
    await said.ended.wait()
    transport.close()
    await said.over.wait()
