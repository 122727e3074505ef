"""Files of the state directory: private to the owner, and replaced as a whole or not at all.

Every function raises StateError with one sentence if the file system refuses, unless its docstring names
OSError.
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
"""Counter for unique names of temporary files, together with `_RUN` and the process id.

The names are unique because a killed process leaves temporary files behind.
"""


def private_directory(path: Path) -> None:
    """Create a directory (0700) and missing parents; an existing directory is not changed."""
    try:
        make_private(path)
    except OSError as error:
        raise StateError(f"directory {path} cannot be made: {error.strerror}") from error


def make_private(path: Path) -> None:
    """Do what `private_directory` does, but raise OSError unchanged.

    The mode does not depend on the umask, because a umask with fewer rights for the owner would make the
    directory unusable. An existing empty directory of ours becomes 0700 too, because nothing in it can be
    read yet. Symbolic links of other users are not followed (`certs.state.links`).
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
    """Set a directory of ours to 0700 if just created (`made`) or empty."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    at = os.open(name, flags, dir_fd=above)
    try:
        result = os.fstat(at)
        if result.st_uid != os.geteuid() or stat.S_IMODE(result.st_mode) == _PRIVATE:
            return
        if not made:
            with links.listed(at) as folder, os.scandir(folder) as entries:
                if any(entries):
                    return
        # By descriptor, because the name may be replaced; fchmod(2) rejects O_PATH descriptors.
        Path(f"/proc/self/fd/{at}").chmod(_PRIVATE)
    finally:
        os.close(at)


def read(path: Path) -> bytes | None:
    """Return a file's content, or None for a missing file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}") from error


def write_private(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Write `content` to `path` (0600) atomically and durably: readers see the old file or the new one.

    The temporary file is in the same directory, because a rename is atomic only within one file system. If
    not `durable`, the call does not wait for the disk; after a power failure the file may be the old one, or
    truncated.
    """
    # Few system calls: each lets another thread take the GIL, and hundreds of files are written.
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
    """Return device and inode of the file at a path, or None for a missing or unreadable file."""
    try:
        result = path.stat()
    except OSError:
        return None
    return result.st_dev, result.st_ino


def open_private(path: Path) -> int:
    """Open a file for reading and writing; create a missing one (0600, whatever the umask).

    Returns the descriptor, without truncating. Raises OSError unchanged, also for a symbolic link or a file
    of another user, and for anything but a regular file (`certs.state.links.open_file`).
    """
    with links.place(path) as (folder, name):
        return links.open_file(name, folder)


def touch_private(path: Path) -> None:
    """Create a missing file, empty, as `open_private` does. Raises OSError unchanged."""
    os.close(open_private(path))


def sync_directory(path: Path) -> None:
    """Make renames in this directory durable. Raises OSError unchanged."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` (created as 0600) against other processes and threads.

    The kernel releases the lock when the holder dies, so a lock file left behind is harmless.
    """
    try:
        descriptor = open_private(path)
    except OSError as error:
        raise StateError(f"directory {path.parent} is not writable: {error.strerror}") from error
    try:
        # flock(2) locks belong to the open file, so they exclude other threads of this process too.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
