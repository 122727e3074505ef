"""Sets of names that are nearly always empty: unchangeable, and all that are empty are one object.

A stream has some thirty of them, and an empty set of its own has 216 bytes.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Final

from xds.protocol.resource import ResourceName

Names = frozenset[ResourceName]

NO_NAMES: Final[Names] = frozenset()


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
