"""Periodic check whether the state directory is writable; changes are logged.

A server without a writable directory stays in operation: the last snapshots are served, and proxies with
valid certificates are admitted. The ledger remembers their events (`certs.ledger`), and this module has them
written as soon as possible.
"""

import asyncio
import errno
import os
import time
from collections.abc import Callable
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


class StateRoom:
    """Check of writing to the state directory and the ledger; `trouble` is the present error, or empty."""

    def __init__(
        self, state: Path, ledger_path: Path, ledger: Ledger, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._state = state
        self._ledger = ledger
        self._monotonic = monotonic
        self._since = 0.0
        self._files = {path: files.identity(path) for path in (state, ledger_path)}
        self.trouble = ""

    def remarks(self) -> tuple[str, ...]:
        """Return the remark about an unwritable state directory for the readiness page.

        May be called from any thread.
        """
        if not self.trouble:
            return ()
        waiting = f"changes of {self._ledger.unwritten} proxies wait to be written"
        return (f"{self.trouble}; valid configuration and certificates are still served, {waiting}",)

    async def watching(self) -> None:
        """Check every LOOK_SECONDS whether the state directory can be written, until cancelled."""
        while True:
            self.take(await asyncio.to_thread(self.look))
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> str:
        """Try to write, including the ledger's pending events; return the error. Call this in a thread."""
        if result := self._moved() or probed(self._state):
            return (
                self._moved() or result
            )  # checked again, because a directory removed just now also fails the attempt to write
        if self._ledger.unwritten:
            try:
                self._ledger.write_unwritten()
            except StateError as error:
                return str(error)
        return ""

    def take(self, result: str) -> None:
        """Record the result of a check, and log a change."""
        before, self.trouble = self.trouble, result
        if result and result != before:
            self._since = self._since if before else self._monotonic()
            _log.error(
                "state directory cannot be written; valid configuration and certificates are still served",
                reason=result,
            )
        elif before and not result:
            seconds = round(self._monotonic() - self._since, 1)
            _log.info("state directory can be written again", seconds=seconds)

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
