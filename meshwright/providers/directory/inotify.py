"""What Linux tells of a directory and all folders beneath it: inotify(7), a descriptor that a loop waits for.

A watcher with a thread of its own asks a hundred times a second whether there is news, and takes the
interpreter each time; a descriptor costs nothing until there is.
"""

import contextlib
import errno
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from inotify_simple import Event, INotify, flags

_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG})
"""Why a folder cannot be watched that is nothing to us: it went meanwhile, or nobody can look into it."""

_CHANGE: Final = flags.MODIFY | flags.ATTRIB | flags.CREATE | flags.DELETE | flags.MOVED_FROM
_COMPLETE: Final = flags.CLOSE_WRITE | flags.MOVED_TO
_FOLDERS: Final = flags.DELETE_SELF | flags.MOVE_SELF | flags.ISDIR
_LOST: Final = flags.Q_OVERFLOW | flags.UNMOUNT
_ASKED: Final = _CHANGE | _COMPLETE | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR

Folders = Mapping[int, tuple[str, ...]]
"""The paths of watched folders by the number of their watch; a symlink gives one a second path."""


@dataclass(frozen=True, slots=True)
class ChangedPaths:
    """What some events say: paths whose change is `complete`, and `others`, of which more may come.

    `folders` says that some may have come or gone, `lost` that not all is known that happened.
    """

    complete: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    folders: bool = False
    lost: bool = False


def heard(events: Iterable[Event], folders: Folders) -> ChangedPaths:
    """Return what events say; those of folders not known are passed over."""
    complete, others, moved, lost = set[str](), set[str](), False, False
    for watch, mask, _, name in events:
        if mask & _LOST:
            lost = True
        elif mask & _FOLDERS:
            moved = True
        elif mask & (_CHANGE | _COMPLETE):
            paths = (f"{folder}/{name}" for folder in folders.get(watch, ()))
            (complete if mask & _COMPLETE else others).update(paths)
    return ChangedPaths(frozenset(complete), frozenset(others - complete), moved, lost)


def is_there() -> bool:
    """Say whether the system has it."""
    return sys.platform == "linux"


class FolderEvents:
    """Watches a directory with all its folders; its descriptor can be read when something happened."""

    def __init__(self) -> None:
        """Raises OSError where the user has too many of them already."""
        self._system = INotify(nonblocking=True)
        self._folders: Folders = {}
        self._open = threading.Lock()  # a descriptor that is closed may be somebody else's a moment later

    def fileno(self) -> int:
        """Return the descriptor that a loop waits for."""
        number: int = self._system.fileno()
        return number

    def place(self, path: Path) -> None:
        """Watch what folders there are now; for a thread, one at a time. Raises OSError.

        What happened before in a folder that is new has brought no event: look at it after this.
        """
        placed: dict[int, tuple[str, ...]] = {self._add(str(path)): (str(path),)}
        waiting = list(_folders_in(str(path)))
        while waiting:
            waiting += self._placed(waiting.pop(), placed)
        for watch in self._folders.keys() - placed.keys():
            self._remove(watch)
        self._folders = placed

    def read(self) -> ChangedPaths:
        """Return what happened since the last time; nothing if that was nothing."""
        return heard(self._system.read(timeout=0), self._folders)

    def close(self) -> None:
        """Watch no more; a thread that places watches ends with an error."""
        with self._open:
            self._system.close()

    def _placed(self, path: str, placed: dict[int, tuple[str, ...]]) -> Iterable[str]:
        """Watch a folder; return those in it that are to be watched as well."""
        try:
            watch = self._add(path)
        except OSError as error:
            if error.errno in _GONE:
                return ()
            raise
        if watch in placed:  # a symlink leads to it, or a loop of them
            placed[watch] = (*placed[watch], path)
            return ()
        placed[watch] = (path,)
        return _folders_in(path)

    def _add(self, path: str) -> int:
        with self._open:
            if self._system.closed:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), path)
            try:
                watch: int = self._system.add_watch(path, _ASKED)
            except OSError as error:  # which does not say where
                raise OSError(error.errno, error.strerror, path) from error
            return watch

    def _remove(self, watch: int) -> None:
        with self._open, contextlib.suppress(OSError):  # of a folder that is gone: so is its watch
            if not self._system.closed:
                self._system.rm_watch(watch)


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
