"""Contract of a place in which the followed records of one server survive its restart."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from meshwright.records.contract import Record
from meshwright.records.key import Key


class LocalCopy(Protocol):
    """A private place of one server. All methods may wait for a disk; one caller at a time."""

    def load(self) -> Iterable[Record]:
        """Return all kept records; nothing if they cannot be read, because the store has them all."""

    def keep(self, changes: Mapping[Key, Record | None]) -> None:
        """Keep changed records, and forget those that are None. Raises OSError; nothing is changed then."""


class NoCopy:
    """A place that keeps nothing."""

    def load(self) -> Iterable[Record]:
        """Return no records."""
        return ()

    def keep(self, changes: Mapping[Key, Record | None]) -> None:
        """Forget the changes."""
