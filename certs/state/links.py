"""Open files and directories without following symbolic links of other users.

Otherwise a process of root that opens a path below another user's folder would open, empty or chmod whatever
this user's links lead to. A link of root or of the caller is followed, because an administrator has made the
link.

Every path is resolved one name at a time, from a descriptor of the folder before, so names cannot be
exchanged between the check and the use. Every function raises OSError.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MOST_LINKS: Final = 40
"""Same limit as the kernel's (path_resolution(7))."""
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags to open a file.

O_NONBLOCK opens a FIFO without waiting for the other end, so the FIFO can be refused.
"""
_ROOT: Final = 0


@contextlib.contextmanager
def place(path: Path) -> Iterator[tuple[int, str]]:
    """Yield a descriptor (O_PATH) of a file's folder, and the file's name there, which is not a link.

    The file need not exist. Raises PermissionError for a link of another user.
    """
    at, left = _begun(path)
    links = 0
    try:
        while True:
            name = left.pop() if left else "."
            if (target := _target(name, at, path)) is None:
                if not left:
                    break
                below = os.open(name, _FOLDER, dir_fd=at)
                os.close(at)
                at = below
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            if target.is_absolute():
                beginning, further = _begun(target)
                os.close(at)
                at = beginning
            else:
                further = [*reversed(target.parts)]
            left += further
        yield at, name
    finally:
        os.close(at)


@contextlib.contextmanager
def directory(path: Path) -> Iterator[int]:
    """Yield a descriptor (O_PATH) of an existing directory, for `dir_fd` and fstat(2)."""
    with place(path) as (above, name):
        descriptor = os.open(name, _FOLDER, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def listed(at: int) -> Iterator[int]:
    """Yield a second descriptor of the directory `at`, for listing, sync and chmod too."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_file(name: str, at: int, mode: int = 0o600, *, any_owner: bool = False) -> int:
    """Open a regular file in the directory `at` for reading and writing; return its descriptor.

    A missing file is made with `mode`, whatever the umask. An existing file is not truncated. The file must
    belong to the caller, root or the directory's owner, unless `any_owner`. A file with a second name is
    refused, unless only the owner can have made the second name.
    """
    try:
        # O_EXCL shows for certain who made the file: fchmod must never change the mode of an existing file.
        descriptor = os.open(name, _FILE | os.O_CREAT | os.O_EXCL, mode, dir_fd=at)
    except FileExistsError:
        descriptor = os.open(name, _FILE, dir_fd=at)
        made = False
    else:
        made = True
    try:
        if made:
            os.fchmod(descriptor, mode)
        else:
            _require_own(name, os.fstat(descriptor), os.fstat(at), any_owner=any_owner)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_own(name: str, result: os.stat_result, folder: os.stat_result, *, any_owner: bool) -> None:
    if not stat.S_ISREG(result.st_mode):
        raise OSError(errno.EINVAL, f"{name} is not a regular file; remove it", name)
    if not any_owner and result.st_uid not in (os.geteuid(), _ROOT, folder.st_uid):
        raise PermissionError(errno.EACCES, f"{name} belongs to user {result.st_uid}; remove it", name)
    # Another user with write access to the folder could give a file of ours a second name here, for example
    # the ledger's, and have it overwritten.
    others_write = result.st_uid != folder.st_uid or stat.S_IMODE(folder.st_mode) & 0o022
    if result.st_nlink > 1 and others_write:
        words = (
            f"{name} has {result.st_nlink} hard links, and another user may have created "
            "one of them; remove it"
        )
        raise PermissionError(errno.EACCES, words, name)


def _begun(path: Path) -> tuple[int, list[str]]:
    """Return a descriptor of the start of a path, `/` or `.`, and the names below in reverse order."""
    names = path.parts[1:] if path.is_absolute() else path.parts
    return os.open("/" if path.is_absolute() else ".", _FOLDER), [*reversed(names)]


def _target(name: str, at: int, path: Path) -> Path | None:
    """Return the target of a link, or None for a missing file and for other kinds. Raises PermissionError."""
    try:
        descriptor = os.open(name, _LINK, dir_fd=at)
    except FileNotFoundError:
        return None
    try:
        result = os.fstat(descriptor)
        if not stat.S_ISLNK(result.st_mode):
            return None
        if result.st_uid not in (os.geteuid(), _ROOT):
            words = (
                f"{name} is a symbolic link that belongs to user {result.st_uid}; links of "
                "other users are not followed"
            )
            raise PermissionError(errno.EACCES, words, str(path))
        return Path(os.readlink("", dir_fd=descriptor))
    finally:
        os.close(descriptor)
