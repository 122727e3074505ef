"""Looking at every file again and again, some at a time, in case events were lost.

They are for symlinks that lead out of the directory, and on some network file systems. A file whose stamp is
what it was has not changed, with one exception: what is written twice within one tick of its file system's
clock may have kept it. So a stamp is proof only once the file was read when that tick was over: whatever was
read is read once more, a round later.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from meshwright.providers.directory.files import (
    SINGLY,
    UNKNOWN,
    DirectoryListing,
    Stamp,
    UnlistedFolder,
    is_unlisted,
    root_of,
    walk,
)
from meshwright.providers.moments import Moment

SLICES: Final = 100
"""In how many slices a round looks at the files, unless they were smaller or larger than these."""

LEAST: Final = 32
MOST: Final = SINGLY // 2

TICK: Final = timedelta(seconds=2)
"""The coarsest clock of a file system that is in use (FAT)."""


@dataclass(frozen=True, slots=True)
class SliceResult:
    """What a slice came to: files to look at as if an event had named them, or that all must be listed.

    `is_last` says that with it every file was looked at.
    """

    names: frozenset[str] = frozenset()
    unsure: bool = False
    is_last: bool = False


class Rounds:
    """Goes round the files of a directory, a round in the time `every`; for one caller at a time.

    It makes no difference to events: what changes meanwhile is found once, by whichever sees it first.
    """

    def __init__(self, path: Path, every: timedelta) -> None:
        self._path = path
        self._every = every
        self._left: Iterator[tuple[str, Stamp, bool]] | None = None
        self._seen: set[str] = set()
        self._unlisted: list[UnlistedFolder] = []
        self._once: dict[str, tuple[Stamp, Moment]] = {}

    def wait(self, listing: DirectoryListing | None) -> timedelta:
        """Return how long to wait between two slices."""
        files = 0 if listing is None else len(listing.files)
        return self._every / max(math.ceil(files / _size(files)), 1)

    def was_read(self, names: Iterable[str], listing: DirectoryListing, now: Moment) -> None:
        """Note which files were read, after they had been listed so."""
        for name in names:
            stamp = listing.files.get(name)
            known, since = self._once.pop(name, (None, now))
            if stamp is not None and (stamp != known or now - since < TICK):
                self._once[name] = (stamp, since if stamp == known else now)

    def slice(self, listing: DirectoryListing, now: Moment) -> SliceResult:
        """Look at the next files; raise DirectoryError if the directory itself cannot be listed."""
        if self._left is None:
            if root_of(self._path) != listing.root:
                return SliceResult(unsure=True, is_last=True)
            self._seen, self._unlisted = set(), []
            self._left = walk(self._path, self._unlisted)
        found = list(islice(self._left, _size(len(listing.files))))
        self._seen.update(name for name, _, _ in found)
        names = {name for name, stamp, _ in found if self._is_due(name, stamp, listing, now)}
        if len(found) == _size(len(listing.files)):
            return SliceResult(frozenset(names))
        self._left = None
        gone = (name for name in listing.files.keys() - self._seen if not is_unlisted(listing, name))
        return SliceResult(
            frozenset((*names, *gone)),
            unsure=tuple(sorted(self._unlisted)) != listing.unlisted,
            is_last=True,
        )

    def _is_due(self, name: str, stamp: Stamp, listing: DirectoryListing, now: Moment) -> bool:
        """Say whether a file must be read: it is another one, or was read but once."""
        if stamp == UNKNOWN or listing.files.get(name) != stamp:
            return True
        _, since = self._once.get(name, (None, None))
        return since is not None and now - since >= TICK


def _size(files: int) -> int:
    """Return how many of so many files are looked at at once."""
    return min(max(math.ceil(files / SLICES), LEAST), MOST)
