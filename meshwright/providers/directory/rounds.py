"""Periodic rounds over all files, a slice at a time, in case events were lost.

For example, some network file systems send no events. A file with an unchanged stamp is unchanged, with one
exception: a file that is written twice within one tick of its file system's clock can keep its stamp. A stamp
is therefore proof only after a read that happened when the tick was over. So each file that was read is read
once more, a round later.
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
"""Number of slices of a round, unless a slice would have fewer than LEAST or more than MOST files."""

LEAST: Final = 32
MOST: Final = SINGLY // 2

TICK: Final = timedelta(seconds=2)
"""Tick of the coarsest clock of a file system in use (FAT)."""


@dataclass(frozen=True, slots=True)
class SliceResult:
    """Result of a slice: files to read as if an event had named them; `unsure` if all must be listed.

    `is_last` is True if the round has now covered every file.
    """

    names: frozenset[str] = frozenset()
    unsure: bool = False
    is_last: bool = False


class Rounds:
    """Rounds over the files of a directory, one round in the time `every`; for one caller at a time.

    Rounds and events are independent: a change is found by whichever is first, and is then known to the
    other.
    """

    def __init__(self, path: Path, every: timedelta) -> None:
        self._path = path
        self._every = every
        self._left: Iterator[tuple[str, Stamp, bool]] | None = None
        self._seen: set[str] = set()
        self._unlisted: list[UnlistedFolder] = []
        self._once: dict[str, tuple[Stamp, Moment]] = {}

    def wait(self, listing: DirectoryListing | None) -> timedelta:
        """Return the pause between two slices, so that a round takes the time `every`."""
        files = 0 if listing is None else len(listing.files)
        return self._every / max(math.ceil(files / _size(files)), 1)

    def was_read(self, names: Iterable[str], listing: DirectoryListing, now: Moment) -> None:
        """Record that these files were read at `now`, after this listing."""
        for name in names:
            stamp = listing.files.get(name)
            known, since = self._once.pop(name, (None, now))
            if stamp is not None and (stamp != known or now - since < TICK):
                self._once[name] = (stamp, since if stamp == known else now)

    def slice(self, listing: DirectoryListing, now: Moment) -> SliceResult:
        """Compare the next slice of files with the listing.

        Raises DirectoryError if the directory itself cannot be listed.
        """
        if self._left is None:
            if root_of(self._path) != listing.root:
                return SliceResult(unsure=True, is_last=True)
            self._seen, self._unlisted = set(), []
            self._left = walk(self._path, self._unlisted)
        result = list(islice(self._left, _size(len(listing.files))))
        self._seen.update(name for name, _, _ in result)
        names = {name for name, stamp, _ in result if self._is_due(name, stamp, listing, now)}
        if len(result) == _size(len(listing.files)):
            return SliceResult(frozenset(names))
        self._left = None
        gone = (name for name in listing.files.keys() - self._seen if not is_unlisted(listing, name))
        return SliceResult(
            frozenset((*names, *gone)),
            unsure=tuple(sorted(self._unlisted)) != listing.unlisted,
            is_last=True,
        )

    def _is_due(self, name: str, stamp: Stamp, listing: DirectoryListing, now: Moment) -> bool:
        """Return whether a file must be read: changed, or read within a tick of its change."""
        if stamp == UNKNOWN or listing.files.get(name) != stamp:
            return True
        _, since = self._once.get(name, (None, None))
        return since is not None and now - since >= TICK


def _size(files: int) -> int:
    """Return the number of files in one slice of a round, given the number of all files."""
    return min(max(math.ceil(files / SLICES), LEAST), MOST)
