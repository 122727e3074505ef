"""Sets of the resources that groups have in common, each made from the one before it."""

import weakref
from typing import Final

from delivery.snapshots.consistency import after
from xds.protocol.resource import Resource
from xds.protocol.resource_set import ResourceSet

KEPT: Final = 4
"""How many sets are looked at for the one that is nearest."""


class Sets:
    """Makes sets; what they hold does not depend on what was made before, only what it costs.

    A set that is another one with a few changes knows what they are: the step from that one is there, and
    so is all that is derived of what did not change.
    """

    def __init__(self) -> None:
        self._newest: list[weakref.ref[ResourceSet]] = []

    def of(self, found: tuple[Resource, ...]) -> ResourceSet:
        """Return these resources as a set."""
        living = [held for each in self._newest if (held := each()) is not None]
        nearest = max(living, key=lambda each: _common(each, found), default=None)
        if nearest is None or 2 * _common(nearest, found) < len(found):
            made = ResourceSet.of(found)
        else:
            made = after(nearest, found)
        self._newest = [weakref.ref(each) for each in (made, *(e for e in living if e is not made))][:KEPT]
        return made


def _common(held: ResourceSet, found: tuple[Resource, ...]) -> int:
    return sum(held.resources(each.type_url).get(each.name) is each for each in found)
