"""Open a file of a directory without following a symlink out of that directory.

A repository of manifests can carry symlinks, and whoever writes to it need not be allowed to read a server's
files. Each folder on the way to a file is therefore opened by itself without following symlinks, and
symlinks are resolved here, folder by folder: nothing outside the directory is ever opened, and no folder can
be exchanged between a check and its use. Symlinks that stay within the directory are followed, as those of a
mounted ConfigMap are: `shop.yaml` leads to `..data/shop.yaml`, and `..data` to `..2026_01_02`.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""How a file is opened: with O_NONBLOCK a FIFO at once; without, `open` waits until somebody writes to it."""

_NOT_FOLLOWED: Final = frozenset({errno.ELOOP, errno.ENOTDIR})
"""What `open` says of a symlink with O_NOFOLLOW: ELOOP for a file, ENOTDIR where a folder is wanted."""

_MOST_LINKS: Final = 40
"""As many symlinks as Linux follows for one path."""


class SymlinkOutsideError(Exception):
    """A symlink on the way to a file leads out of the directory."""


def open_beneath(root: Path, name: str) -> int:
    """Open a file for reading and return its descriptor; `name` is relative to `root`, as `shop/rules.yaml`.

    `root` itself may be a symlink. The file may be of any kind: look with `os.fstat` before you read. Raises
    SymlinkOutsideError where a symlink leads out of `root`, even if it comes back, and OSError.
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
    """Open one entry of a folder; return no descriptor but the target where the entry is a symlink."""
    try:
        return os.open(part, (FILE if is_last else _FOLDER) | os.O_NOFOLLOW, dir_fd=folder), ""
    except OSError as error:
        if error.errno not in _NOT_FOLLOWED:
            raise
        try:
            return None, os.readlink(part, dir_fd=folder)
        except OSError:  # it is no symlink
            raise error from None


def _leave(folders: list[int]) -> None:
    """Go to the folder above the innermost; raise SymlinkOutsideError where that is the directory itself."""
    if len(folders) == 1:
        raise SymlinkOutsideError
    os.close(folders.pop())


def _below(root: Path, target: str) -> str:
    """Return the absolute target of a symlink relative to `root`.

    Raise SymlinkOutsideError if it is elsewhere.
    """
    for base in _names_of(root):
        if target == base or target.startswith(f"{base}/"):
            return target[len(base) :]
    raise SymlinkOutsideError


def _names_of(root: Path) -> Iterator[str]:
    """Yield the absolute paths of a directory: as it is named, and without symlinks."""
    yield os.path.abspath(root)  # noqa: PTH100 - `absolute` leaves `..`, `resolve` follows symlinks
    yield os.path.realpath(root)


def _close(descriptors: list[int]) -> None:
    for each in descriptors:
        os.close(each)
