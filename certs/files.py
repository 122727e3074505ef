"""Files of the state directory: private to its owner, and replaced whole or not at all.

Every function raises StateError, with one sentence, where the file system refuses.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from certs.errors import StateError


def private_directory(path: Path) -> None:
    """Make a directory (0700), and those above it that are missing; one that exists is left as it is."""
    try:
        if not path.parent.exists():
            private_directory(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StateError(f"directory {path} cannot be made: {error.strerror}") from error


def read(path: Path) -> bytes | None:
    """Return a file's content, or None where there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}") from error


def write_private(path: Path, content: bytes) -> None:
    """Put `content` at `path` (0600), atomically and durably: readers see the old file or the new one.

    The temporary file stands beside it, because a rename is atomic within one file system only.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(temporary).unlink()
            raise
        sync_directory(path.parent)
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from error


def sync_directory(path: Path) -> None:
    """Make a rename in this directory last through a power failure. Raises OSError as it comes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` (made 0600 if missing) against other processes and threads.

    The kernel gives the lock back when its holder dies, so the file that stays behind locks nobody out.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(f"directory {path.parent} is not writable: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
