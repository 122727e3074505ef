"""Sets of names that are nearly always empty: unchangeable, and all that are empty are one object.

A stream has some thirty of them, and an empty set of its own has 216 bytes.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from xds.resource import ResourceName

Names = frozenset[ResourceName]

NO_NAMES: Final[Names] = frozenset()


def joined(names: Names, more: Iterable[ResourceName]) -> Names:
    """Return both together."""
    added = frozenset(more)
    return names | added if names and added else names or added or NO_NAMES


def without(names: Names, others: AbstractSet[ResourceName]) -> Names:
    """Return the names that are not among the others."""
    return names.difference(others) or NO_NAMES if names and others else names
