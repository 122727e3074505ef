"""What an endpoint provider knows at one moment."""

from dataclasses import dataclass

from mesh.objects import EndpointSlice
from mesh.workload import Workload


@dataclass(frozen=True, slots=True)
class Inventory:
    """The workloads and endpoint slices that one provider knows; both sorted by their keys."""

    workloads: tuple[Workload, ...] = ()
    slices: tuple[EndpointSlice, ...] = ()
