"""Sets of the resources that groups have in common, each made from the one before it."""

import weakref
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from meshwright.delivery.snapshots.consistency import after
from xds.protocol.resources.resource import Reference, Resource
from xds.protocol.resources.resource_set import ResourceSet

KEPT: Final = 4
"""How many sets are looked at for the one that is nearest."""

Batch = tuple[Resource, ...]
"""Resources that are made together: what is in the very same batch as before is what it was."""


class SetBuilder:
    """Makes sets; what they hold does not depend on what was made before, only what it costs.

    A set that is another one with a few changes knows what they are: the step from that one is there, and
    so is all that is derived of what did not change.
    """

    def __init__(self) -> None:
        self._newest: list[weakref.ref[ResourceSet]] = []
        self._batches: weakref.WeakKeyDictionary[ResourceSet, list[Batch]] = weakref.WeakKeyDictionary()

    def of(self, batches: Iterable[Batch]) -> ResourceSet:
        """Return the resources of batches as a set; it costs the batches that are other ones.

        Raises SnapshotError where two have one type and name.
        """
        found = [each for each in batches if each]
        made = self._near(found)
        if made is None:
            made = self._made(tuple(chain.from_iterable(found)))
        self._batches[made] = found
        self._newest = [weakref.ref(each) for each in (made, *(e for e in self._living() if e is not made))]
        del self._newest[KEPT:]
        return made

    def _living(self) -> list[ResourceSet]:
        return [held for each in self._newest if (held := each()) is not None]

    def _near(self, batches: Sequence[Batch]) -> ResourceSet | None:
        """Return the set made from one that has most of these batches; None where there is no such."""
        for held in self._living():
            fresh, gone = _unlike(batches, self._batches[held]), _unlike(self._batches[held], batches)
            if 2 * max(len(fresh), len(gone)) <= len(batches):
                return _with(held, tuple(chain(*fresh)), tuple(chain(*gone)))
        return None

    def _made(self, found: tuple[Resource, ...]) -> ResourceSet:
        living = self._living()
        nearest = max(living, key=lambda each: _common(each, found), default=None)
        if nearest is None or 2 * _common(nearest, found) < len(found):
            return ResourceSet.of(found)
        return after(nearest, found)


def _unlike(batches: Sequence[Batch], others: Sequence[Batch]) -> list[Batch]:
    """Return those that are not among others; the very same ones are looked for."""
    known = set(map(id, others))
    return [each for each in batches if id(each) not in known]


def _with(held: ResourceSet, fresh: Batch, gone: Batch) -> ResourceSet | None:
    """Return a set with fresh resources in the place of others; None where two have one type and name."""
    left = {(each.type_url, each.name) for each in gone}
    put = {(each.type_url, each.name): each for each in fresh}
    if len(put) != len(fresh) or any(key not in left and _at(held, key) is not None for key in put):
        return None
    changed = [each for key, each in put.items() if (old := _at(held, key)) is not each and old != each]
    removed = [key for key in sorted(left) if key not in put]
    return held.changed(changed, removed) if changed or removed else held


def _at(held: ResourceSet, key: Reference) -> Resource | None:
    return held.resources(key[0]).get(key[1])


def _common(held: ResourceSet, found: tuple[Resource, ...]) -> int:
    return sum(held.resources(each.type_url).get(each.name) is each for each in found)
