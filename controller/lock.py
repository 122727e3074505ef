"""One server per state directory: an exclusive lock that ends with the process that holds it."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.errors import StartupError

LOCK_FILE: Final = "server.lock"


def prepare(state: Path) -> None:
    """Create the state directory (0700) if it is missing; raise StartupError if it cannot be written."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartupError(f"cannot create the state directory {state}: {error.strerror}") from error
    if not os.access(state, os.R_OK | os.W_OK | os.X_OK):
        raise StartupError(f"the state directory {state} is not writable for this user")


@contextlib.contextmanager
def held(state: Path) -> Iterator[None]:
    """Hold the lock of `state`; raise StartupError if another process holds it.

    The kernel gives the lock back when its holder dies, so a crash leaves nothing to clean up.
    """
    path = state / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StartupError(f"the state directory {state} is not writable: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise StartupError(
            f"the state directory {state} is in use by another meshwright serve (process {holder})"
        ) from error
    try:
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)
