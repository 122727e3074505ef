"""Edits: how the mesh differs from what a view knows of it."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self, TypeVar

from catalog.store.settings import MeshSettings
from mesh.endpoints import Inventory
from mesh.identity import ProxyName
from mesh.objects import EndpointSlice, ObjectKey, Sourced
from mesh.picture import Picture
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
    admitted: Mapping[ProxyName, ProxyName | None] = field(default_factory=lambda: MappingProxyType({}))
    settings: MeshSettings | None = None

    def __bool__(self) -> bool:
        return bool(self.objects or self.workloads or self.slices or self.admitted or self.settings)

    def __len__(self) -> int:
        keyed = len(self.objects) + len(self.workloads) + len(self.slices) + len(self.admitted)
        return keyed + (self.settings is not None)

    def parts(self, size: int) -> Iterator["Edits"]:
        """Yield the edits in parts of at most `size`, the whole if it is no larger.

        Settings and objects come first, then slices, admissions and workloads: what a workload is in is there
        before it.
        """
        if len(self) <= size:
            yield self
            return
        if self.settings is not None:
            yield Edits(settings=self.settings)
        yield from (Edits(objects=part) for part in _parts(self.objects, size))
        yield from (Edits(slices=part) for part in _parts(self.slices, size))
        yield from (Edits(admitted=part) for part in _parts(self.admitted, size))
        yield from (Edits(workloads=part) for part in _parts(self.workloads, size))


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that a view knows, or is to know, by key.

    `admitted` are the proxies whose workloads may get traffic (see `catalog.relations.readiness`).
    """

    objects: Picture[ObjectKey, Sourced] = field(default_factory=Picture)
    workloads: Picture[WorkloadKey, Workload] = field(default_factory=Picture)
    slices: Picture[ObjectKey, EndpointSlice] = field(default_factory=Picture)
    admitted: Picture[ProxyName, ProxyName] = field(default_factory=Picture)

    @classmethod
    def of(
        cls,
        objects: Mapping[ObjectKey, Sourced],
        inventory: Inventory,
        admitted: Mapping[ProxyName, ProxyName] | None = None,
    ) -> Self:
        """Take objects, an inventory and admitted proxies."""
        known = Picture.of(admitted or {})
        return cls(Picture.of(objects), inventory.workloads, inventory.slices, known)


def difference(before: Known, after: Known) -> Edits:
    """Return the edits that lead from one to the other; costs what `Picture.since` does."""
    slices: dict[EndpointSlice, EndpointSlice | None] = {}
    for key, found in after.slices.since(before.slices).items():
        if (old := before.slices.get(key)) is not None:
            slices[old] = None
        if found is not None:
            slices[found] = found
    return Edits(
        after.objects.since(before.objects),
        after.workloads.since(before.workloads),
        slices,
        after.admitted.since(before.admitted),
    )


def _parts(edits: Mapping[K, V], size: int) -> Iterator[dict[K, V]]:
    left = iter(edits.items())
    while part := dict(itertools.islice(left, size)):
        yield part
