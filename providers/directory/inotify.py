"""What Linux tells of a directory and all folders beneath it: inotify(7), a descriptor that a loop waits for.

A library's thread asks a hundred times a second whether there is news, and takes the interpreter each time; a
descriptor costs nothing until there is.
"""

import ctypes
import enum
import errno
import os
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HEADER: Final = struct.Struct("iIII")
"""struct inotify_event: wd, mask, cookie, len; then the name, filled up with zeros."""

_READ: Final = 65536
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP})
"""Why a folder cannot be watched that is nothing to us: it went meanwhile, or nobody may look into it."""


class Flag(enum.IntFlag):
    """What happened, as <sys/inotify.h> has it."""

    MODIFY = 0x2
    ATTRIB = 0x4
    CLOSE_WRITE = 0x8
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATE = 0x100
    DELETE = 0x200
    DELETE_SELF = 0x400
    MOVE_SELF = 0x800
    UNMOUNT = 0x2000
    Q_OVERFLOW = 0x4000
    IGNORED = 0x8000
    ONLYDIR = 0x1000000
    ISDIR = 0x40000000


_CHANGE: Final = int(Flag.MODIFY | Flag.ATTRIB | Flag.CREATE | Flag.DELETE | Flag.MOVED_FROM)
_COMPLETE: Final = int(Flag.CLOSE_WRITE | Flag.MOVED_TO)
_ITSELF: Final = int(Flag.DELETE_SELF | Flag.MOVE_SELF)
_LOST: Final = int(Flag.Q_OVERFLOW | Flag.UNMOUNT)
_IS_FOLDER: Final = int(Flag.ISDIR)
_ASKED: Final = _CHANGE | _COMPLETE | _ITSELF | int(Flag.ONLYDIR)

Folders = Mapping[int, tuple[str, ...]]
"""The paths of watched folders by the number of their watch; a symlink gives one a second path."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What some events say: paths whose change is `complete`, and `others`, of which more may come.

    `folders` says that some may have come or gone, `lost` that not all is known that happened.
    """

    complete: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    folders: bool = False
    lost: bool = False


def heard(data: bytes, folders: Folders) -> Heard:
    """Return what events say, as the descriptor gives them; those of folders not known are passed over."""
    complete, others, moved, lost = set[str](), set[str](), False, False
    offset = 0
    while offset < len(data):
        watch, mask, _, length = _HEADER.unpack_from(data, offset)
        offset += _HEADER.size + length
        if mask & _LOST:
            lost = True
        elif mask & (_ITSELF | _IS_FOLDER):
            moved = True
        elif mask & (_CHANGE | _COMPLETE):
            name = os.fsdecode(data[offset - length : offset].rstrip(b"\0"))
            paths = (f"{folder}/{name}" for folder in folders.get(watch, ()))
            (complete if mask & _COMPLETE else others).update(paths)
    return Heard(frozenset(complete), frozenset(others - complete), moved, lost)


def is_there() -> bool:
    """Say whether the system has it."""
    return sys.platform == "linux"


class Inotify:
    """Watches a directory with all its folders; `descriptor` can be read when something happened."""

    def __init__(self) -> None:
        """Raises OSError where the user has too many of them already."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: Folders = {}
        self._open = threading.Lock()  # a descriptor that is closed may be somebody else's a moment later
        self.descriptor: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise _error("inotify")

    def place(self, path: Path) -> None:
        """Watch what folders there are now; for a thread, one at a time. Raises OSError.

        What happened before in a folder that is new has brought no event: look at it after this.
        """
        placed: dict[int, tuple[str, ...]] = {self._add(str(path)): (str(path),)}
        for folder in _folders_in(str(path)):
            self._descend(folder, placed)
        for watch in self._folders.keys() - placed.keys():
            with self._open:  # it fails where the folder is gone: so is its watch
                self._libc.inotify_rm_watch(self.descriptor, watch)
        self._folders = placed

    def read(self) -> Heard:
        """Return what happened since the last time; nothing if that was nothing."""
        try:
            return heard(os.read(self.descriptor, _READ), self._folders)
        except BlockingIOError:
            return Heard()

    def close(self) -> None:
        """Watch no more; a thread that places watches ends with an error."""
        with self._open:
            os.close(self.descriptor)
            self.descriptor = -1

    def _descend(self, path: str, placed: dict[int, tuple[str, ...]]) -> None:
        try:
            watch = self._add(path)
        except OSError as error:
            if error.errno in _GONE:
                return
            raise
        if watch in placed:  # a symlink leads to it, or a loop of them
            placed[watch] = (*placed[watch], path)
            return
        placed[watch] = (path,)
        for folder in _folders_in(path):
            self._descend(folder, placed)

    def _add(self, path: str) -> int:
        with self._open:
            watch: int = self._libc.inotify_add_watch(self.descriptor, os.fsencode(path), _ASKED)
        if watch < 0:
            raise _error(path)
        return watch


def _folders_in(path: str) -> Iterator[str]:
    try:
        with os.scandir(path) as entries:
            found = [each.path for each in entries if _is_folder(each)]
    except OSError as error:
        if error.errno in _GONE:
            return
        raise
    yield from found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)
