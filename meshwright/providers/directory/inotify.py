"""Linux events of a directory and all its folders: inotify(7), as a descriptor for the event loop.

A watcher with a thread polls for news a hundred times a second, and takes the interpreter's lock each time. A
descriptor costs nothing until an event arrives.
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
"""Harmless reasons why a folder cannot be watched: it was removed meanwhile, or cannot be read."""

_CHANGE: Final = flags.MODIFY | flags.ATTRIB | flags.CREATE | flags.DELETE | flags.MOVED_FROM
_COMPLETE: Final = flags.CLOSE_WRITE | flags.MOVED_TO
_FOLDERS: Final = flags.DELETE_SELF | flags.MOVE_SELF | flags.ISDIR
_LOST: Final = flags.Q_OVERFLOW | flags.UNMOUNT
_ASKED: Final = _CHANGE | _COMPLETE | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR

Folders = Mapping[int, tuple[str, ...]]
"""Paths of watched folders by the number of their watch; a symlink gives a folder a second path."""


@dataclass(frozen=True, slots=True)
class ChangedPaths:
    """Changes from a batch of events: `complete` paths, and `others` for which more events may follow.

    `folders` is True if folders may have been added or removed, `lost` if events may have been lost.
    """

    complete: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    folders: bool = False
    lost: bool = False


def changed_paths(events: Iterable[Event], folders: Folders) -> ChangedPaths:
    """Return the changed paths in inotify events; events of unknown folders are ignored."""
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
    """Return whether the system has inotify."""
    return sys.platform == "linux"


class FolderEvents:
    """Watch for a directory with all its folders; the descriptor is readable when events have arrived."""

    def __init__(self) -> None:
        """Create the inotify descriptor; raises OSError if the user already has too many of them."""
        self._system = INotify(nonblocking=True)
        self._folders: Folders = {}
        self._open = threading.Lock()  # the number of a closed descriptor may be reused at once

    def fileno(self) -> int:
        """Return the inotify descriptor, for the event loop."""
        number: int = self._system.fileno()
        return number

    def place(self, path: Path) -> None:
        """Watch all present folders; to be called in a thread, one call at a time. Raises OSError.

        Changes in a new folder before this call have brought no event, so list the directory afterwards.
        """
        placed: dict[int, tuple[str, ...]] = {self._add(str(path)): (str(path),)}
        waiting = list(_folders_in(str(path)))
        while waiting:
            waiting += self._placed(waiting.pop(), placed)
        for watch in self._folders.keys() - placed.keys():
            self._remove(watch)
        self._folders = placed

    def read(self) -> ChangedPaths:
        """Return the changed paths since the last call; empty without events."""
        return changed_paths(self._system.read(timeout=0), self._folders)

    def close(self) -> None:
        """Stop watching all folders; a thread in `place` then fails with an OSError."""
        with self._open:
            self._system.close()

    def _placed(self, path: str, placed: dict[int, tuple[str, ...]]) -> Iterable[str]:
        """Add a watch for a folder to `placed`; return the paths of its subfolders."""
        try:
            watch = self._add(path)
        except OSError as error:
            if error.errno in _GONE:
                return ()
            raise
        if watch in placed:  # reached by a symlink before, possibly in a loop
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
            except OSError as error:  # the original error lacks the path
                raise OSError(error.errno, error.strerror, path) from error
            return watch

    def _remove(self, watch: int) -> None:
        with self._open, contextlib.suppress(OSError):  # the watch of a removed folder has ended by itself
            if not self._system.closed:
                self._system.rm_watch(watch)


def _folders_in(path: str) -> Iterator[str]:
    try:
        with os.scandir(path) as entries:
            result = [entry.path for entry in entries if _is_folder(entry)]
    except OSError as error:
        if error.errno in _GONE:
            return
        raise
    yield from result


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
