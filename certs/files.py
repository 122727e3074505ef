"""Files of the state directory: private to its owner, and replaced whole or not at all.

Every function raises StateError, with one sentence, where the file system refuses.
"""

import fcntl
import itertools
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from certs.errors import StateError

_RUN: Final = secrets.token_hex(8)
_WRITTEN: Final = itertools.count()
"""By these and the process' number no two temporary files have one name: a killed one's are there still."""


def private_directory(path: Path) -> None:
    """Make a directory (0700), and those above it that are missing; one that exists is left as it is."""
    try:
        make_private(path)
    except OSError as error:
        raise StateError(f"directory {path} cannot be made: {error.strerror}") from error


def make_private(path: Path) -> None:
    """Do what `private_directory` does, and raise OSError as it comes.

    Whatever the umask: one that takes rights from the owner would make a directory that nobody can use. One
    of ours that is there and empty is taken as if it were made now: there is nothing in it to be read yet.
    """
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        make_private(path.parent)
        make_private(path)
    except FileExistsError:
        if not path.is_dir():
            raise
        if path.stat().st_uid == os.geteuid() and not any(path.iterdir()):
            path.chmod(0o700)
    else:
        path.chmod(0o700)


def read(path: Path) -> bytes | None:
    """Return a file's content, or None where there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}") from error


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Put `content` at `path` (0600), atomically and durably: readers see the old file or the new one.

    The temporary file stands beside it, because a rename is atomic within one file system only. What is not
    `durable` waits for no disk: after a power failure it may be the old file, or one that is cut short.
    """
    # Hundreds are written by a thread while others compute: at each call of the system those have a turn.
    temporary = path.with_name(f".{path.name[:64]}.{_RUN}.{os.getpid()}.{next(_WRITTEN)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                os.fchmod(descriptor, 0o600)
                _write_whole(descriptor, content)
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            sync_directory(path.parent)
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from error


def _write_whole(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def identity(path: Path) -> tuple[int, int] | None:
    """Return which file stands at a path now; None where there is none, or nobody can tell."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def touch_private(path: Path) -> None:
    """Make an empty file (0600, whatever the umask) where there is none. Raises OSError as it comes."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_EXCL, 0o600)
    except FileExistsError:
        os.close(os.open(path, flags, 0o600))  # a directory in its place is an error, as one for SQLite
        return
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


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
        touch_private(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise StateError(f"directory {path.parent} is not writable: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
