"""Keeper of our plug-in on the node and in the runtime's network list, whatever other programs write there.

Files are replaced as a whole, and are on the disk before another program can read them.
"""

import asyncio
import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import structlog

from meshwright.agent.file_watch import LOOK_SECONDS, changes
from meshwright.kubernetes.cni.networks import (
    FileRemoval,
    FileRename,
    Files,
    FileWrite,
    NoNetworkError,
    Step,
    put_in,
    take_out,
)
from meshwright.kubernetes.cni.program import Program, ProgramError

_NEW: Final = ".meshwright-new"
_LARGEST: Final = 1 << 20
_REST_SECONDS: Final = 0.5
"""Seconds without reaction after a change of the folder, so that two disagreeing programs do not race."""
_log = structlog.get_logger("cni.keeper")


class Keeper:
    """Writer of the plug-in's entry in the active network list of a node's folder of network files."""

    def __init__(
        self,
        folder: Path,
        entry: Mapping[str, Any],
        program: Program,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._entry = entry
        self._program = program
        self._changed = changed
        self._failures = 0
        self._writing = threading.Lock()  # a cancelled task does not stop the thread that installs the entry
        self._ended = False
        self.words = "the directory with the network configuration of the node has not been read yet"
        """Reason why our plug-in is missing from the list; empty while the list has the plug-in."""

    async def keep(self, look_seconds: float = LOOK_SECONDS) -> None:
        """Put the plug-in into the network list, and again after a removal, until cancelled.

        Failures are repeated.
        """
        async for _ in changes([self._folder, self._program.folder], self._digest, look_seconds):
            text, self.words = self.words, await asyncio.to_thread(self.put)
            if self.words and self.words != text:
                _log.error(
                    "plug-in is missing from the network configuration of the node",
                    folder=str(self._folder),
                    reason=self.words,
                )
            await asyncio.sleep(_REST_SECONDS)

    def put(self) -> str:
        """Install the program and the entry; return the reason of a failure, or an empty text."""
        with self._writing:
            return "the plug-in was removed, because the daemon ends" if self._ended else self._put()

    def _put(self) -> str:
        try:
            if not self._program.is_there():
                version = self._program.put()
                _log.info("plug-in installed", folder=str(self._program.folder), version=version)
            if steps := put_in(self._files(), self._entry):
                self._apply(steps)
                self._changed()
                _log.info("plug-in added to the network configuration of the node", changed=named(steps))
        except (NoNetworkError, ProgramError, OSError) as error:
            self._failures += 1
            return str(error)
        return ""

    def take(self) -> tuple[str, ...]:
        """Remove the plug-in from every network list for good; return the changed files. Raises OSError."""
        with self._writing:
            self._ended = True
            steps = take_out(self._files())
            self._apply(steps)
            for left in self._folder.glob(f"*{_NEW}"):
                left.unlink(missing_ok=True)
        return named(steps)

    def _digest(self) -> str:
        """Return a digest of the network files and of the program's presence, another after each failure."""
        result = hashlib.sha256(f"{self._failures} {self._program.is_there()}".encode())
        with contextlib.suppress(OSError):  # a missing folder; `put` reports it
            for name, content in sorted(self._files().items()):
                result.update(name.encode() + b"\0" + content + b"\0")
        return result.hexdigest()

    def _files(self) -> Files:
        """Return the content of the files in the folder, except files too large for a network."""
        result = {}
        for path in sorted(self._folder.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                if path.is_file() and not path.name.endswith(_NEW) and path.stat().st_size <= _LARGEST:
                    result[path.name] = path.read_bytes()
        return result

    def _apply(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case FileWrite(name, content, like):
                    self._write(self._folder / name, content, self._folder / like)
                case FileRename(name, to):
                    (self._folder / name).replace(self._folder / to)
                case FileRemoval(name):
                    (self._folder / name).unlink(missing_ok=True)
            self._sync()

    def _write(self, path: Path, content: bytes, like: Path) -> None:
        new = path.with_name(path.name + _NEW)
        new.unlink(missing_ok=True)  # remains of a daemon that was killed
        with new.open("xb") as file:  # "x" follows no link and empties no file
            with contextlib.suppress(FileNotFoundError):
                before = like.stat()
                os.fchmod(file.fileno(), before.st_mode & 0o7777)
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def _sync(self) -> None:
        """Flush the folder of network files to the disk, because the next step relies on the new names."""
        opened = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def named(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return the names of the network files that the steps change."""
    return tuple(dict.fromkeys(step.name for step in steps))
