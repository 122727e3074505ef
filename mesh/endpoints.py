"""What an endpoint provider knows at one moment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from mesh.kinds import ENDPOINT_SLICE
from mesh.objects import EndpointSlice, ObjectKey
from mesh.picture import Picture
from mesh.workload import Workload, WorkloadKey


def slice_key(found: EndpointSlice) -> ObjectKey:
    """Return the key of a slice, whichever kind of object it was read from."""
    return ObjectKey.of(ENDPOINT_SLICE, found)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The workloads and endpoint slices that one provider knows, by key."""

    workloads: Picture[WorkloadKey, Workload] = field(default_factory=Picture)
    slices: Picture[ObjectKey, EndpointSlice] = field(default_factory=Picture)

    @classmethod
    def of(cls, workloads: Iterable[Workload] = (), slices: Iterable[EndpointSlice] = ()) -> Self:
        """Make an inventory that has no past."""
        return cls().becoming(workloads, slices)

    def becoming(self, workloads: Iterable[Workload] = (), slices: Iterable[EndpointSlice] = ()) -> Self:
        """Return the inventory of exactly these, knowing how it differs from this one; itself if equal."""
        return self._with(
            self.workloads.becoming({each.key: each for each in workloads}),
            self.slices.becoming({slice_key(each): each for each in slices}),
        )

    def changed(
        self,
        workloads: Mapping[WorkloadKey, Workload | None],
        slices: Mapping[ObjectKey, EndpointSlice | None],
    ) -> Self:
        """Return the inventory with others under some keys, None for what is gone; itself if equal."""
        return self._with(self.workloads.changed(workloads), self.slices.changed(slices))

    def _with(
        self, workloads: Picture[WorkloadKey, Workload], slices: Picture[ObjectKey, EndpointSlice]
    ) -> Self:
        if workloads is self.workloads and slices is self.slices:
            return self
        return type(self)(workloads, slices)
