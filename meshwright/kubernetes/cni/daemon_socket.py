"""The daemon's socket, at which the plug-in asks; and the notes of what it asked while nobody was there."""

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
"""How often notes are looked for: a plug-in may leave one just as the daemon begins."""

_log = structlog.get_logger("cni.serving")


@contextlib.asynccontextmanager
async def served(folder: Path, answerer: Answerer) -> AsyncIterator[None]:
    """Answer at the socket of a folder that is root's alone, within the block; who has asked is answered."""
    await asyncio.to_thread(_own, folder)
    asking: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it runs
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
    """Have the folder be there and 0700; raise OSError, also for a link, and for a folder of another user."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if (owner := os.fstat(opened).st_uid) != os.geteuid():
            raise PermissionError(errno.EACCES, f"it belongs to user {owner}", str(folder))
        os.fchmod(opened, 0o700)
    finally:
        os.close(opened)


async def _one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answerer: Answerer) -> None:
    """Answer one who asks; who is gone meanwhile, or says nothing, is not answered."""
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
    """Do what was asked while nobody answered, until cancelled: what fails is tried again.

    The plug-in takes a note away when the pod ends, and so does whoever finds its network gone.
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
    """Until when a note that failed is left alone, and how long that is: twice as long each time."""

    until: float = 0.0
    seconds: float = 1.0

    def longer(self, now: float) -> "_RetryPause":
        return _RetryPause(now + self.seconds, min(2 * self.seconds, _MOST_SECONDS))


async def _catch_up(note: Path, answerer: Answerer) -> bool:
    """Do what a note says; say whether nothing is left to do."""
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
