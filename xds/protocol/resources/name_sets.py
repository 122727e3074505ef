"""Sets of names that are nearly always empty: unchangeable, and all that are empty are one object.

A stream has some thirty of them, and an empty set of its own has 216 bytes.
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
    """Names in a client's order that others list as well: what is asked of all of them is found out once."""

    @cached_property
    def names(self) -> Names:
        """Each of them once."""
        return frozenset(self)

    @cached_property
    def text(self) -> int:
        """The bytes of memory that the text of `names` takes."""
        return text_bytes(self.names)

    @cached_property
    def longest(self) -> int:
        """The characters of the longest."""
        return max(map(len, self), default=0)


def names_of(listed: tuple[ResourceName, ...]) -> Names:
    """Return the names of a list, each once."""
    return listed.names if isinstance(listed, NameList) else frozenset(listed)


def text_of(names: Names, listed: tuple[ResourceName, ...]) -> int:
    """Return how many bytes of memory the text of names takes that stand in a list."""
    return listed.text if isinstance(listed, NameList) and names is listed.names else text_bytes(names)


def longest(names: Collection[ResourceName]) -> int:
    """Return how many characters the longest of some names has, 0 if there is none."""
    return names.longest if isinstance(names, NameList) else max(map(len, names), default=0)


def joined(names: Names, more: Iterable[ResourceName]) -> Names:
    """Return both together."""
    added = frozenset(more)
    return names | added if names and added else names or added or NO_NAMES


def without(names: Names, others: AbstractSet[ResourceName]) -> Names:
    """Return the names that are not among the others."""
    return names.difference(others) or NO_NAMES if names and others else names


def text_bytes(texts: Iterable[str]) -> int:
    """Return how many bytes of memory texts take: in one that is not ASCII, up to four for a character."""
    return sum(map(str.__sizeof__, texts))


def first_of(names: Collection[ResourceName], room: int) -> list[ResourceName]:
    """Return the first names, sorted, for which there is room, in bytes of memory; one at least, if any."""
    ordered = sorted(names)
    sizes = list(accumulate(map(str.__sizeof__, ordered)))
    return ordered[: max(1, bisect_right(sizes, room))]
