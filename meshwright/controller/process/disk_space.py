"""Periodic check whether the state directory and the ledger can be written; changes are logged.

The ledger is a file of the state directory, or is in a store that several servers share. A server that cannot
write stays in operation: the last snapshots are served, and proxies with valid certificates are admitted. The
ledger remembers their events (`certs.ledger`), and this module has them written as soon as possible.
"""

import asyncio
import errno
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from certs.errors import StateError
from certs.ledger.contract import Ledger
from certs.state import files

LOOK_SECONDS: Final = 2.0
_PROBE_FILE: Final = ".room"
_PROBE_BYTES: Final = 16 * 1024

_log = structlog.get_logger("controller.process.room")


_STILL_SERVED: Final = "valid configuration and certificates are still served"


@dataclass(frozen=True, slots=True)
class StorePlace:
    """Description of a shared store for messages: its name, and what to do if a write fails."""

    name: str
    do: str


@dataclass(frozen=True, slots=True)
class WriteFailure:
    """A failed attempt to write: to the state directory, or to `store`, unless that is None."""

    reason: str
    store: StorePlace | None = None

    @property
    def place(self) -> str:
        """Return the place in log lines."""
        return "state directory" if self.store is None else "shared store"

    def __str__(self) -> str:
        if self.store is None:
            return self.reason
        return f"the shared store, {self.store.name}, cannot be written: {self.reason}; {self.store.do}"


class StateRoom:
    """Check of writing to the state directory and the ledger; `trouble` is the present failure, or None.

    `store` is the store that has the ledger, None for a ledger in the state directory.
    """

    def __init__(
        self,
        state: Path,
        ledger_path: Path,
        ledger: Ledger,
        monotonic: Callable[[], float] = time.monotonic,
        store: StorePlace | None = None,
    ) -> None:
        self._state = state
        self._store = store
        self._ledger = ledger
        self._monotonic = monotonic
        self._since = 0.0
        self._files = {path: files.identity(path) for path in (state, ledger_path)}
        self.trouble: WriteFailure | None = None

    def remarks(self) -> tuple[str, ...]:
        """Return the remark about an unwritable state directory or ledger for the readiness page.

        May be called from any thread.
        """
        if not self.trouble:
            return ()
        waiting = f"changes of {self._ledger.unwritten} proxies wait to be written"
        return (f"{self.trouble}; {_STILL_SERVED}, {waiting}",)

    async def watching(self) -> None:
        """Check every LOOK_SECONDS whether directory and ledger can be written, until cancelled."""
        while True:
            self.take(await asyncio.to_thread(self.look))
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> WriteFailure | None:
        """Try to write, including the ledger's pending events; return a failure. Call this in a thread."""
        if result := self._moved() or probed(self._state):
            # Checked again, because a directory removed just now also fails the attempt to write.
            return WriteFailure(self._moved() or result)
        if self._ledger.unwritten:
            try:
                # Also the attempt that shows whether the store of several servers takes writes again.
                self._ledger.write_unwritten()
            except StateError as error:
                return WriteFailure(str(error), self._store)
        return None

    def take(self, result: WriteFailure | None) -> None:
        """Record the result of a check, and log a change."""
        before, self.trouble = self.trouble, result
        if result is not None and result != before:
            self._since = self._since if before else self._monotonic()
            facts = {} if result.store is None else {"store": result.store.name, "do": result.store.do}
            _log.error(f"{result.place} cannot be written; {_STILL_SERVED}", reason=result.reason, **facts)
        elif before is not None and result is None:
            seconds = round(self._monotonic() - self._since, 1)
            _log.info(f"{before.place} can be written again", seconds=seconds)

    def _moved(self) -> str:
        for path, before in self._files.items():
            if files.identity(path) != before:
                return f"{path} was removed or replaced after the start: restore it and restart the server"
        return ""


def probed(directory: Path) -> str:
    """Write and remove a small file; return the error, empty for success.

    Root may call this for another user's directory, so an existing file or link of this name is never written
    to.
    """
    path = directory / _PROBE_FILE
    try:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            written = os.write(descriptor, bytes(_PROBE_BYTES))
        finally:
            os.close(descriptor)
            path.unlink(missing_ok=True)
    except FileExistsError:  # another process checks at the same moment, and could write
        return ""
    except OSError as error:
        return f"the state directory {directory} cannot be written: {_reason(directory, error)}"
    full = written < _PROBE_BYTES
    return f"the state directory {directory} cannot be written: {os.strerror(errno.ENOSPC)}" if full else ""


def _reason(directory: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        try:
            if not os.statvfs(directory).f_favail and os.statvfs(directory).f_bavail:
                return f"{error.strerror} (more files cannot be made; there are blocks left)"
        except OSError:
            return str(error.strerror)
    return str(error.strerror)
