"""Exclusive lock of a state directory, for one server or command at a time; released with its process."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

from certs.errors import StateError
from certs.state.files import make_private, open_private
from certs.state.privacy import exposures, require_private
from meshwright.controller.errors import StartupError, StateInUse

_log = structlog.get_logger("controller.process.lock")

LOCK_FILE: Final = "server.lock"

COMMAND_SECONDS: Final = 5.0
"""Seconds that a starting server waits for a command to release the directory."""

_PAUSE_SECONDS: Final = 0.05
_SHOWN: Final = 3
_PID_LENGTH: Final = 10
"""Fixed length of the process id in the file, so a rewrite works on a full disk."""


def prepare(state: Path, *, shared: bool = False) -> None:
    """Create the state directory (mode 0700) if missing; raise StartupError if not writable.

    StartupError is also raised if other users have access, unless `shared` is True; then a warning is logged.
    """
    try:
        make_private(state)
    except OSError as error:
        raise StartupError(f"cannot create the state directory {state}: {error.strerror}") from error
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        raise StartupError(f"the state directory {state} is not writable for this user")
    if shared:
        for words in exposures(state)[:_SHOWN]:
            _log.warning("state directory is accessible to other users", what=words)
        return
    try:
        require_private(state)
    except StateError as error:
        raise StartupError(str(error)) from error


@contextlib.contextmanager
def hold_lock(state: Path, seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock of `state`, after waiting up to `seconds`; raise StateInUse if another process keeps it.

    Raises StartupError if a lock is impossible. Blocks the thread. The kernel releases the lock at the end of
    the process, so a crash leaves nothing to clean up.
    """
    path = state / LOCK_FILE
    try:
        descriptor = open_private(path)
    except OSError as error:
        raise StartupError(f"the state directory {state} is not writable: {error.strerror}") from error
    try:
        limit = time.monotonic() + seconds
        while not _locked(descriptor):
            if time.monotonic() >= limit:
                holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
                raise StateInUse(
                    f"the state directory {state} is in use by another meshwright (process {holder})"
                )
            # Polling, because a blocking lock could not be given up after the limit.
            time.sleep(_PAUSE_SECONDS)
        with contextlib.suppress(
            OSError
        ):  # the process id is only for people; a full disk must not prevent the lock
            os.pwrite(descriptor, f"{os.getpid():<{_PID_LENGTH}}\n".encode("ascii"), 0)
            os.truncate(descriptor, _PID_LENGTH + 1)
        yield
    finally:
        os.close(descriptor)


def holder(state: Path) -> int | None:
    """Return the process id of the present or last holder of the state directory's lock.

    `None` if the lock file is unreadable.
    """
    try:
        return int((state / LOCK_FILE).read_text("ascii"))
    except (OSError, ValueError):
        return None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
