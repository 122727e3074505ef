"""The daemon's socket for the plug-in, and the notes of requests from times without a daemon."""

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from meshwright.kubernetes.cni.relay import NOTES
from meshwright.kubernetes.cni.responses import Answerer, Outcome, Request

SOCKET: Final = "cni.sock"
_LARGEST: Final = 1 << 16
_SECONDS: Final = 10.0
_MOST_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 1.0
"""Seconds between two searches for notes, because a plug-in may write one while the daemon starts."""

_log = structlog.get_logger("cni.serving")


@contextlib.asynccontextmanager
async def served(folder: Path, answerer: Answerer) -> AsyncIterator[None]:
    """Serve the socket in `folder`, which only the daemon's user may enter, during the block.

    Open requests are answered before the block ends.
    """
    await asyncio.to_thread(_own, folder)
    asking: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a task runs this coroutine
        asking.add(task)
        try:
            await _one(reader, writer, answerer)
        finally:
            asking.discard(task)

    server = await asyncio.start_unix_server(one, folder / SOCKET, limit=_LARGEST)
    try:
        yield
    finally:
        server.close()
        if asking:
            await asyncio.wait(asking)
        await server.wait_closed()


def _own(folder: Path) -> None:
    """Create the folder with mode 0700. Raises OSError, also for a link and for a folder of another user."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if (owner := os.fstat(opened).st_uid) != os.geteuid():
            raise PermissionError(
                errno.EACCES,
                f"the folder belongs to user {owner}, not to the user of this process",
                str(folder),
            )
        os.fchmod(opened, 0o700)
    finally:
        os.close(opened)


async def _one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answerer: Answerer) -> None:
    """Answer one request of the plug-in on a new connection, unless the plug-in is gone or silent."""
    with contextlib.suppress(OSError, TimeoutError):
        try:
            async with asyncio.timeout(_SECONDS):
                content = await reader.read(_LARGEST)
                while not reader.at_eof() and len(content) < _LARGEST:
                    content += await reader.read(_LARGEST)
            writer.write((await answerer.read(content)).written())
            await writer.drain()
        finally:
            writer.close()


async def catching_up(folder: Path, answerer: Answerer, seconds: float = _LOOK_SECONDS) -> None:
    """Carry out the noted requests until cancelled; failed requests are repeated.

    A note is deleted by the plug-in when the Pod ends, or by the daemon when the Pod's network is gone.
    """
    loop, rests = asyncio.get_running_loop(), dict[Path, _RetryPause]()
    while True:
        notes = await asyncio.to_thread(_notes, folder / NOTES)
        rests = {note: rests.get(note, _RetryPause()) for note in notes}
        for note, rest in rests.items():
            if rest.until <= loop.time() and not await _catch_up(note, answerer):
                rests[note] = rest.longer(loop.time())
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class _RetryPause:
    """End of a failed note's pause, in loop time, and the seconds of the next pause.

    The pause doubles each time, up to 60 seconds.
    """

    until: float = 0.0
    seconds: float = 1.0

    def longer(self, now: float) -> "_RetryPause":
        return _RetryPause(now + self.seconds, min(2 * self.seconds, _MOST_SECONDS))


async def _catch_up(note: Path, answerer: Answerer) -> bool:
    """Carry out the request in a note of the plug-in; return whether the note needs no further attempt."""
    try:
        asked = Request.read(await asyncio.to_thread(note.read_bytes))
    except FileNotFoundError:
        return True
    except (OSError, ValueError, RecursionError) as error:
        _log.error("note is unreadable; the daemon deletes it", note=note.name, reason=str(error))
        await asyncio.to_thread(note.unlink, missing_ok=True)
        return True
    if (await answerer.answer(asked)).outcome is Outcome.FAILED:
        return False
    await asyncio.to_thread(note.unlink, missing_ok=True)
    return True


def _notes(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json")) if folder.is_dir() else []
