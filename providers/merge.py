"""Several providers' inventories as one, by declared precedence."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from mesh.endpoints import Inventory
from mesh.objects import EndpointSlice, ObjectKey, Origin, Problem, Severity
from mesh.workload import Workload
from smi.codes import Code

T = TypeVar("T")


def merge(inventories: Sequence[tuple[str, Inventory]]) -> tuple[Inventory, tuple[Problem, ...]]:
    """Merge inventories of named sources; on an equal key the earlier one wins.

    A key that a later source knows differently is a problem (a warning), the same value is none.
    """
    workloads, workload_problems = _first_wins(
        [(name, inventory.workloads) for name, inventory in inventories], _workload_key
    )
    slices, slice_problems = _first_wins(
        [(name, inventory.slices) for name, inventory in inventories], _slice_key
    )
    return Inventory(workloads, slices), tuple(sorted({*workload_problems, *slice_problems}, key=str))


def _workload_key(workload: Workload) -> ObjectKey:
    return ObjectKey("Workload", workload.key.namespace, workload.key.name)


def _slice_key(found: EndpointSlice) -> ObjectKey:
    return ObjectKey("EndpointSlice", found.namespace, found.name)


def _first_wins(
    sources: Sequence[tuple[str, Sequence[T]]], key_of: Callable[[T], ObjectKey]
) -> tuple[tuple[T, ...], list[Problem]]:
    kept: dict[ObjectKey, tuple[str, T]] = {}
    problems = []
    for name, values in sources:
        for value in values:
            key = key_of(value)
            winner, first = kept.setdefault(key, (name, value))
            if first != value:
                expected = f"is known differently by the source {winner}, which comes first and is used"
                problems.append(
                    Problem(
                        str(Code.DUPLICATE_ENDPOINT), Severity.WARNING, Origin(name), key, "", "", expected
                    )
                )
    return tuple(kept[key][1] for key in sorted(kept)), problems
