"""Whether the state directory can be written: tried from time to time, and said when that changes.

A server that cannot write goes on: what it holds is served, who has a valid certificate is let in. What
proxies do meanwhile the ledger remembers (certs.ledger), and is written from here when that can be done.
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
    """Looks whether the state directory and its ledger can be written; `trouble` says why not, if so."""

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
        """Return what readiness has to say besides; may be called from any thread."""
        if not self.trouble:
            return ()
        remembered = f"what is remembered to be written later concerns {self._ledger.unwritten} proxies"
        return (f"{self.trouble}; what is valid is served on, {remembered}",)

    async def watching(self) -> None:
        """Look every LOOK_SECONDS, until cancelled."""
        while True:
            self.take(await asyncio.to_thread(self.look))
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> str:
        """Try to write, also what the ledger remembers; return what is wrong. For a thread."""
        if found := self._moved() or probed(self._state):
            return self._moved() or found  # asked again: the try fails as well where it has just gone
        if self._ledger.unwritten:
            try:
                self._ledger.write_unwritten()
            except StateError as error:
                return str(error)
        return ""

    def take(self, found: str) -> None:
        """Take over what a look has found, and say it where it is new."""
        before, self.trouble = self.trouble, found
        if found and found != before:
            self._since = self._since if before else self._monotonic()
            _log.error("the state directory cannot be written; what is valid is served on", reason=found)
        elif before and not found:
            seconds = round(self._monotonic() - self._since, 1)
            _log.info("the state directory can be written again", seconds=seconds)

    def _moved(self) -> str:
        for path, before in self._files.items():
            if files.identity(path) != before:
                return (
                    f"{path} is not there any more, or is another than at the start: put it back, and restart"
                )
        return ""


def probed(directory: Path) -> str:
    """Write a small file and remove it; return what is wrong, empty if nothing is.

    Root may ask of another user's directory: nothing that stands there by that name is written to.
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
    except FileExistsError:  # server and `check` ask at one moment: the other could write
        return ""
    except OSError as error:
        return f"the state directory {directory} cannot be written: {_reason(directory, error)}"
    full = written < _PROBE_BYTES
    return f"the state directory {directory} cannot be written: {os.strerror(errno.ENOSPC)}" if full else ""


def _reason(directory: Path, error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        try:
            if not os.statvfs(directory).f_favail and os.statvfs(directory).f_bavail:
                return f"{error.strerror} (no more files can be made; there are blocks left)"
        except OSError:
            return str(error.strerror)
    return str(error.strerror)
