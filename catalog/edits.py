"""Edits: how the mesh differs from what a view knows of it."""

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self, TypeVar

from catalog.settings import MeshSettings
from mesh.endpoints import Inventory
from mesh.objects import EndpointSlice, ObjectKey, Sourced
from mesh.workload import Workload, WorkloadKey

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Edits:
    """What is now known under each key, None for what is gone. What is not named stays as it was.

    A slice is known by itself: another form of it is another slice.
    """

    objects: Mapping[ObjectKey, Sourced | None] = field(default_factory=lambda: MappingProxyType({}))
    workloads: Mapping[WorkloadKey, Workload | None] = field(default_factory=lambda: MappingProxyType({}))
    slices: Mapping[EndpointSlice, EndpointSlice | None] = field(default_factory=lambda: MappingProxyType({}))
    settings: MeshSettings | None = None

    def __bool__(self) -> bool:
        return bool(self.objects or self.workloads or self.slices or self.settings)


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that a view knows, or is to know; no two of a kind have one key."""

    objects: tuple[Sourced, ...]
    workloads: tuple[Workload, ...]
    slices: tuple[EndpointSlice, ...]

    @classmethod
    def of(cls, objects: Mapping[ObjectKey, Sourced], inventory: Inventory) -> Self:
        """Take objects and an inventory, in whatever order they are."""
        return cls(tuple(objects.values()), inventory.workloads, inventory.slices)


def difference(before: Known, after: Known) -> Edits:
    """Return the edits that lead from one to the other.

    What both begin and end with, the same objects in the same order, is not looked at: between two answers
    of one source, which are sorted, little is left.
    """
    objects = _changes(before.objects, after.objects, _object_key)
    workloads = _changes(before.workloads, after.workloads, _workload_key)
    slices = _changes(before.slices, after.slices, _itself)
    return Edits(objects, workloads, slices)


def _object_key(found: Sourced) -> ObjectKey:
    return found.key


def _workload_key(found: Workload) -> WorkloadKey:
    return found.key


def _itself(found: EndpointSlice) -> EndpointSlice:
    return found


def _changes(before: tuple[V, ...], after: tuple[V, ...], key_of: Callable[[V], K]) -> Mapping[K, V | None]:
    if before is after:
        return {}
    first = _common(before, after)
    last = min(_common(reversed(before), reversed(after)), len(before) - first, len(after) - first)
    old = {key_of(each): each for each in before[first : len(before) - last]}
    new = {key_of(each): each for each in after[first : len(after) - last]}
    changes: dict[K, V | None] = {key: each for key, each in new.items() if old.get(key) is not each}
    changes.update((key, None) for key in old if key not in new)
    return changes


def _common(one: Iterable[object], other: Iterable[object]) -> int:
    """Return how many of the first are the same objects."""
    differs = map(operator.is_not, one, other)
    return next(itertools.compress(itertools.count(), itertools.chain(differs, (True,))))
