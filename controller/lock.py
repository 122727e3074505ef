"""One server per state directory: an exclusive lock that ends with the process that holds it."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.errors import StartupError, StateInUse

LOCK_FILE: Final = "server.lock"

COMMAND_SECONDS: Final = 5.0
"""How long a server that starts waits for a command that has the directory for a moment."""

_PAUSE_SECONDS: Final = 0.05


def prepare(state: Path) -> None:
    """Create the state directory (0700) if it is missing; raise StartupError if it cannot be written."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartupError(f"cannot create the state directory {state}: {error.strerror}") from error
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        raise StartupError(f"the state directory {state} is not writable for this user")


@contextlib.contextmanager
def held(state: Path, seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock of `state`, waiting for it so long; raise StateInUse if another process keeps it.

    Raises StartupError if there can be no lock. The thread waits. The kernel gives the lock back when its
    holder dies, so a crash leaves nothing to clean up.
    """
    path = state / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
            time.sleep(_PAUSE_SECONDS)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
