"""Open files and directories without following symbolic links that other users made.

A process of root that opens a path below another user's folder would otherwise open, empty or chmod whatever
that user's link leads to. A link of root or of the caller is followed, because an administrator made it.

Every path is resolved one name at a time, from a descriptor of the folder before it, so that no name can be
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

O_NONBLOCK opens a FIFO without waiting for its other end, so that it can be refused.
"""
_ROOT: Final = 0


@contextlib.contextmanager
def place(path: Path) -> Iterator[tuple[int, str]]:
    """Yield a descriptor (O_PATH) of the folder of a file, and its name there, which is not a link.

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
    """Yield a descriptor (O_PATH) of a directory that exists; for `dir_fd` and fstat(2)."""
    with place(path) as (above, name):
        descriptor = os.open(name, _FOLDER, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def listed(at: int) -> Iterator[int]:
    """Yield a descriptor of the directory `at` that can also be listed, synced and chmodded."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_file(name: str, at: int, mode: int = 0o600, *, any_owner: bool = False) -> int:
    """Open a regular file in the directory `at` for reading and writing; return its descriptor.

    A file that is missing is made with `mode`, whatever the umask. Nothing is truncated. A file is refused
    that belongs to neither the caller, root nor the directory's owner (unless it may have `any_owner`). So is
    one that has a second name, unless only its owner can have given it that name.
    """
    try:
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


def _require_own(name: str, found: os.stat_result, folder: os.stat_result, *, any_owner: bool) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, f"{name} is not a regular file; remove it", name)
    if not any_owner and found.st_uid not in (os.geteuid(), _ROOT, folder.st_uid):
        raise PermissionError(errno.EACCES, f"{name} belongs to user {found.st_uid}; remove it", name)
    others_write = found.st_uid != folder.st_uid or stat.S_IMODE(folder.st_mode) & 0o022
    if found.st_nlink > 1 and others_write:
        words = (
            f"{name} has {found.st_nlink} hard links, and another user may have created "
            "one of them; remove it"
        )
        raise PermissionError(errno.EACCES, words, name)


def _begun(path: Path) -> tuple[int, list[str]]:
    """Return a descriptor of the start of a path, and its names in reverse order."""
    names = path.parts[1:] if path.is_absolute() else path.parts
    return os.open("/" if path.is_absolute() else ".", _FOLDER), [*reversed(names)]


def _target(name: str, at: int, path: Path) -> Path | None:
    """Return the target of a link, or None if it is not a link or is missing. Raises PermissionError."""
    try:
        descriptor = os.open(name, _LINK, dir_fd=at)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISLNK(found.st_mode):
            return None
        if found.st_uid not in (os.geteuid(), _ROOT):
            words = (
                f"{name} is a symbolic link that belongs to user {found.st_uid}; links of "
                "other users are not followed"
            )
            raise PermissionError(errno.EACCES, words, str(path))
        return Path(os.readlink("", dir_fd=descriptor))
    finally:
        os.close(descriptor)
