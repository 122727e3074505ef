"""Files of the state directory: private to its owner, and replaced whole or not at all.

Every function raises StateError, with one sentence, where the file system refuses.
"""

import fcntl
import itertools
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from certs.errors import StateError
from certs.state import links

_PRIVATE: Final = 0o700
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
    Symbolic links of other users are not followed (`certs.state.links`).
    """
    try:
        _make(path)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_private(path.parent)
        _make(path)


def _make(path: Path) -> None:
    with links.place(path) as (above, name):
        try:
            os.mkdir(name, 0o700, dir_fd=above)
        except FileExistsError as error:
            try:
                _close_to_others(name, above, made=False)
            except NotADirectoryError:
                raise error from None
        else:
            _close_to_others(name, above, made=True)


def _close_to_others(name: str, above: int, *, made: bool) -> None:
    """Have a directory of ours that was made now, or is empty, be 0700; another's is left as it is."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    at = os.open(name, flags, dir_fd=above)
    try:
        found = os.fstat(at)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) == _PRIVATE:
            return
        if not made:
            with links.listed(at) as folder, os.scandir(folder) as entries:
                if any(entries):
                    return
        # By its descriptor: the name may lead elsewhere by now. fchmod(2) takes none of O_PATH.
        Path(f"/proc/self/fd/{at}").chmod(_PRIVATE)
    finally:
        os.close(at)


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


def open_private(path: Path) -> int:
    """Open a file for reading and writing, made (0600, whatever the umask) where there is none.

    Returns its descriptor; nothing is truncated. Raises OSError as it comes: also for another user's symbolic
    link, a file of another user, and what is no regular file (`certs.state.links.open_file`).
    """
    with links.place(path) as (folder, name):
        return links.open_file(name, folder)


def touch_private(path: Path) -> None:
    """Make an empty file where there is none, as `open_private` does. Raises OSError as it comes."""
    os.close(open_private(path))


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
        descriptor = open_private(path)
    except OSError as error:
        raise StateError(f"directory {path.parent} is not writable: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
