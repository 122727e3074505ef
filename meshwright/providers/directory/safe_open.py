"""Opening of a file in a directory without following a symlink out of the directory.

A repository of manifests can contain symlinks, and its authors may lack permission to read the server's
files. Each folder on the path is therefore opened by itself without following symlinks, and symlinks are
resolved here, folder by folder. In this way files outside the directory are never opened, and a folder cannot
be exchanged between a check and its use. Symlinks within the directory are followed, for example those of a
mounted ConfigMap: `shop.yaml` leads to `..data/shop.yaml`, and `..data` to `..2026_01_02`.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags for a file. With O_NONBLOCK, `open` returns at once for a FIFO; otherwise it waits for a writer."""

_NOT_FOLLOWED: Final = frozenset({errno.ELOOP, errno.ENOTDIR})
"""Errors of `open` for a symlink with O_NOFOLLOW: ELOOP for a file, ENOTDIR for an expected folder."""

_MOST_LINKS: Final = 40
"""Maximum number of symlinks in one path, as in Linux."""


class SymlinkOutsideError(Exception):
    """A symlink in a file's path leads out of the directory of manifests."""


def open_beneath(root: Path, name: str) -> int:
    """Open a file for reading and return its descriptor; `name` is relative to `root`: `shop/rules.yaml`.

    `root` itself may be a symlink. The file may be of any type, so check with `os.fstat` before reading.
    Raises OSError, and SymlinkOutsideError for a symlink out of `root`, even if the path comes back into it.
    """
    folders = [os.open(root, _FOLDER)]
    waiting = name.split("/")[::-1]
    links = 0
    try:
        while waiting:
            part = waiting.pop()
            if part in ("", "."):
                continue
            if part == "..":
                _leave(folders)
                continue
            opened, target = _open(part, folders[-1], is_last=not waiting)
            if opened is None:
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
                if target.startswith("/"):
                    _close(folders[1:])
                    del folders[1:]
                    target = _below(root, target)
                waiting.extend(reversed(target.split("/")))
            elif waiting:
                folders.append(opened)
            else:
                return opened
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    finally:
        _close(folders)


def _open(part: str, folder: int, *, is_last: bool) -> tuple[int | None, str]:
    """Open one entry of a folder; for a symlink return None and the symlink's target."""
    try:
        return os.open(part, (FILE if is_last else _FOLDER) | os.O_NOFOLLOW, dir_fd=folder), ""
    except OSError as error:
        if error.errno not in _NOT_FOLLOWED:
            raise
        try:
            return None, os.readlink(part, dir_fd=folder)
        except OSError:  # not a symlink
            raise error from None


def _leave(folders: list[int]) -> None:
    """Go to the parent of the last open folder; raises SymlinkOutsideError at the directory itself."""
    if len(folders) == 1:
        raise SymlinkOutsideError
    os.close(folders.pop())


def _below(root: Path, target: str) -> str:
    """Return the absolute target of a symlink relative to `root`.

    Raises SymlinkOutsideError if the target is elsewhere.
    """
    for base in _names_of(root):
        if target == base or target.startswith(f"{base}/"):
            return target[len(base) :]
    raise SymlinkOutsideError


def _names_of(root: Path) -> Iterator[str]:
    """Yield the absolute paths of a directory: as given, and without symlinks."""
    yield os.path.abspath(root)  # noqa: PTH100 - `absolute` leaves `..`, `resolve` follows symlinks
    yield os.path.realpath(root)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
