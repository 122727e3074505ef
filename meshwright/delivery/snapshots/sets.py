"""Sets of resources shared by groups, each derived from the most similar earlier set."""

import weakref
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from meshwright.delivery.snapshots.consistency import after
from xds.protocol.resources.resource import Reference, Resource
from xds.protocol.resources.resource_set import ResourceSet

KEPT: Final = 4
"""Number of earlier sets compared to find the most similar one."""

Batch = tuple[Resource, ...]
"""Resources made together: the same tuple object has the same resources."""


class SetBuilder:
    """Builder of sets. Earlier sets have an effect on the cost of a new set, never on the content.

    A derived set knows the difference from the earlier set, so results derived from unchanged resources are
    reused.
    """

    def __init__(self) -> None:
        self._newest: list[weakref.ref[ResourceSet]] = []
        self._batches: weakref.WeakKeyDictionary[ResourceSet, list[Batch]] = weakref.WeakKeyDictionary()

    def build_set(self, batches: Iterable[Batch]) -> ResourceSet:
        """Return the resources of batches as a set; the cost depends on the changed batches.

        Raises SnapshotError if two resources have the same type and name.
        """
        result = [batch for batch in batches if batch]
        made = self._derived(result)
        if made is None:
            made = self._from_resources(tuple(chain.from_iterable(result)))
        self._batches[made] = result
        # Weak references: a set lives only as long as a snapshot has it.
        self._newest = [
            weakref.ref(resource_set)
            for resource_set in (made, *(e for e in self._live_sets() if e is not made))
        ]
        del self._newest[KEPT:]
        return made

    def _live_sets(self) -> list[ResourceSet]:
        return [held for reference_type in self._newest if (held := reference_type()) is not None]

    def _derived(self, batches: Sequence[Batch]) -> ResourceSet | None:
        """Return the set derived from an earlier set with most of these batches, or `None`."""
        for held in self._live_sets():
            fresh, gone = _missing_in(batches, self._batches[held]), _missing_in(self._batches[held], batches)
            # With more than half of the batches changed, a new set is cheaper.
            if 2 * max(len(fresh), len(gone)) <= len(batches):
                return _replaced(held, tuple(chain(*fresh)), tuple(chain(*gone)))
        return None

    def _from_resources(self, resources: tuple[Resource, ...]) -> ResourceSet:
        living = self._live_sets()
        nearest = max(living, key=lambda resource_set: _common(resource_set, resources), default=None)
        if nearest is None or 2 * _common(nearest, resources) < len(resources):
            return ResourceSet.of(resources)
        return after(nearest, resources)


def _missing_in(batches: Sequence[Batch], others: Sequence[Batch]) -> list[Batch]:
    """Return the batches missing in the others, compared by identity."""
    known = set(map(id, others))
    return [batch for batch in batches if id(batch) not in known]


def _replaced(resource_set: ResourceSet, fresh: Batch, gone: Batch) -> ResourceSet | None:
    """Return the set with some resources replaced; `None` if two have the same type and name."""
    left = {(resource.type_url, resource.name) for resource in gone}
    put = {(resource.type_url, resource.name): resource for resource in fresh}
    if len(put) != len(fresh) or any(key not in left and _at(resource_set, key) is not None for key in put):
        return None
    changed = [
        resource
        for key, resource in put.items()
        if (old := _at(resource_set, key)) is not resource and old != resource
    ]
    removed = [key for key in sorted(left) if key not in put]
    return resource_set.changed(changed, removed) if changed or removed else resource_set


def _at(resource_set: ResourceSet, key: Reference) -> Resource | None:
    return resource_set.resources(key[0]).get(key[1])


def _common(resource_set: ResourceSet, resources: tuple[Resource, ...]) -> int:
    return sum(
        resource_set.resources(resource.type_url).get(resource.name) is resource for resource in resources
    )
