"""Commands with a deadline, whose processes and pipes are all gone when the call returns.

asyncio's `communicate` does not end a command at a deadline or on cancellation. Killing only the command is
not enough either: a child of a wrapper script may hold the pipes open for hours.
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
"""Default limit of stored output, and of stored errors, in bytes."""

_OUTPUT: Final = 1
_ERRORS: Final = 2


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments; `environment` and `folder` default to the ones of this process.

    - `stdin`: bytes for standard input; None for no input.
    - `merged`: standard error is merged into the output, in the order of writing.
    - `most_bytes`: limit of stored bytes of output and of errors; the rest is read and dropped.
    """

    argv: Sequence[str]
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    folder: Path | None = None
    stdin: bytes | None = field(default=None, repr=False)
    merged: bool = False
    most_bytes: int = MOST_BYTES


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a command: exit status (negative for the signal that ended the command) and output."""

    status: int
    output: bytes = field(repr=False)
    errors: bytes = field(repr=False)


async def run(command: Command, seconds: float) -> CommandResult:
    """Run a command until the command has ended and all pipes are closed; return the result.

    Raises OSError if the start fails, and TimeoutError after `seconds`. After a timeout, and on cancellation,
    the command is killed with all processes of its session. Each command has its own session: Ctrl-C in a
    terminal does not reach the command, and the command cannot prompt there.
    """
    command_output = _CommandOutput(command.most_bytes)
    # Start in a task: on cancellation during the start we still need the process to kill it.
    starting = asyncio.create_task(_started(command, command_output), name=f"start {command.argv[0]}")
    try:
        async with asyncio.timeout(seconds):
            await asyncio.shield(starting)
            await command_output.over.wait()
    finally:
        await _end(starting, command_output)
    status = starting.result().get_returncode()
    assert status is not None  # noqa: S101 - the command is over
    return CommandResult(status, command_output.kept(_OUTPUT), command_output.kept(_ERRORS))


class _CommandOutput(asyncio.SubprocessProtocol):
    """Output of a command up to the limit, with the events `ended` (process) and `over` (all pipes too)."""

    def __init__(self, most: int) -> None:
        self.ended = asyncio.Event()
        self.over = asyncio.Event()
        self._most = most
        self._kept = {_OUTPUT: bytearray(), _ERRORS: bytearray()}

    def kept(self, descriptor: int) -> bytes:
        """Return the stored bytes from standard output (descriptor 1) or standard error (2)."""
        return bytes(self._kept[descriptor])

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Store data from the command's output, up to the limit."""
        kept = self._kept[fd]
        kept += data[: self._most - len(kept)]

    def process_exited(self) -> None:
        """Set the event `ended`; other processes may still hold the command's pipes."""
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - always None here
        """Set the event `over`: the command has ended, and all pipes are closed."""
        self.over.set()


async def _started(command: Command, output: _CommandOutput) -> asyncio.SubprocessTransport:
    transport, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: output,
        *command.argv,
        stdin=DEVNULL if command.stdin is None else PIPE,
        stdout=PIPE,
        stderr=STDOUT if command.merged else PIPE,
        env=command.environment,
        cwd=command.folder,
        start_new_session=True,
    )
    if command.stdin is not None:
        into = transport.get_pipe_transport(0)
        assert isinstance(into, asyncio.WriteTransport)  # noqa: S101 - requested by PIPE
        into.write(command.stdin)
        into.close()  # after all bytes are written
    return transport


async def _end(starting: "asyncio.Task[asyncio.SubprocessTransport]", output: _CommandOutput) -> None:
    """Kill the remaining processes of a command, and close its pipes, even if another process holds them."""
    await asyncio.wait([starting])
    if starting.exception() is not None:  # raised to the caller of `run`
        return
    transport = starting.result()
    if not output.over.is_set():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(transport.get_pid(), signal.SIGKILL)
    # Closing the transport earlier would reap the process, and asyncio's child watcher would miss its exit.
    await output.ended.wait()
    transport.close()
    await output.over.wait()
