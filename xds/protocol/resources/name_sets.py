"""Immutable sets of names, nearly always empty; all empty ones are one object.

A stream has about thirty of them, and each separate empty set would take 216 bytes.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import accumulate
from typing import Final

from xds.protocol.resources.resource import ResourceName

Names = frozenset[ResourceName]

NO_NAMES: Final[Names] = frozenset()


class NameList(tuple[ResourceName, ...]):  # noqa: SLOT001 - it remembers
    """Names in a client's order, shared by streams with the same request.

    Derived values are computed once.
    """

    @cached_property
    def names(self) -> Names:
        """Return the names as a set."""
        return frozenset(self)

    @cached_property
    def text(self) -> int:
        """Return the memory of the text of `names` in bytes."""
        return text_bytes(self.names)

    @cached_property
    def longest(self) -> int:
        """Return the length of the longest name in characters."""
        return max(map(len, self), default=0)


def names_of(listed: tuple[ResourceName, ...]) -> Names:
    """Return the names of a list as a set."""
    return listed.names if isinstance(listed, NameList) else frozenset(listed)


def text_of(names: Names, listed: tuple[ResourceName, ...]) -> int:
    """Return the memory of the text of `names` in bytes; `listed` is the list with these names."""
    return listed.text if isinstance(listed, NameList) and names is listed.names else text_bytes(names)


def longest(names: Collection[ResourceName]) -> int:
    """Return the length of the longest name in characters; 0 for an empty list."""
    return names.longest if isinstance(names, NameList) else max(map(len, names), default=0)


def joined(names: Names, more: Iterable[ResourceName]) -> Names:
    """Return the union of two collections of names."""
    added = frozenset(more)
    return names | added if names and added else names or added or NO_NAMES


def without(names: Names, others: AbstractSet[ResourceName]) -> Names:
    """Return the names except those in `others`."""
    return names.difference(others) or NO_NAMES if names and others else names


def text_bytes(texts: Iterable[str]) -> int:
    """Return the memory of texts in bytes; a character outside of ASCII can make each take up to four."""
    return sum(map(str.__sizeof__, texts))


def first_of(names: Collection[ResourceName], room: int) -> list[ResourceName]:
    """Return the first names in sorted order within `room` bytes of memory, but at least one."""
    ordered = sorted(names)
    sizes = list(accumulate(map(str.__sizeof__, ordered)))
    return ordered[: max(1, bisect_right(sizes, room))]
