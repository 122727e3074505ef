"""Several providers' inventories as one, by declared precedence."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mesh.endpoints import Inventory
from mesh.kinds import WORKLOAD
from mesh.objects import ObjectKey
from mesh.origins import FromSource
from mesh.picture import Picture
from mesh.problems import Problem, Problems, Severity, ordered
from mesh.workload import WorkloadKey
from specs.codes import Code

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Named = tuple[str, Inventory]
"""A source's name and what it knows."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Several inventories, the one they come to, and where they contradict each other, by object."""

    of: tuple[Named, ...] = ()
    inventory: Inventory = field(default_factory=Inventory)
    disputes: Mapping[ObjectKey, Problems] = field(default_factory=dict)

    @property
    def problems(self) -> Problems:
        """The contradictions, sorted."""
        return ordered(each for said in self.disputes.values() for each in said)

    def source(self, key: ObjectKey) -> str:
        """Return the source that a workload or slice is taken from; empty if none has it."""
        return next((name for name, inventory in self.of if _has(inventory, key)), "")


def merge(inventories: Sequence[Named], before: Merged | None = None) -> Merged:
    """Merge inventories of named sources; on an equal key the earlier one wins.

    A key that a later source knows differently is a problem (a warning), the same value is none. Given what
    the same sources came to before, it looks at what has changed since.
    """
    of = tuple(inventories)
    if before is None or [name for name, _ in before.of] != [name for name, _ in of]:
        before = Merged(tuple((name, Inventory()) for name, _ in of))
    if len(of) == 1:  # nobody to contradict it
        return Merged(of, of[0][1])
    old = before.of
    workloads, said = _merged(
        before.inventory.workloads,
        [(name, now.workloads, then.workloads) for (name, now), (_, then) in zip(of, old, strict=True)],
    )
    slices, more = _merged(
        before.inventory.slices,
        [(name, now.slices, then.slices) for (name, now), (_, then) in zip(of, old, strict=True)],
    )
    found = {**{_workload_object(key): each for key, each in said.items()}, **more}
    disputes = {**before.disputes, **found} if found else before.disputes
    return Merged(of, Inventory(workloads, slices), {key: each for key, each in disputes.items() if each})


def _merged(
    before: Picture[K, V], sources: Sequence[tuple[str, Picture[K, V], Picture[K, V]]]
) -> tuple[Picture[K, V], dict[K, Problems]]:
    """Return the values of all sources, and what is said of each key that has changed in one of them."""
    changed = dict.fromkeys(key for _, now, then in sources for key in now.since(then))
    edits: dict[K, V | None] = {}
    said: dict[K, Problems] = {}
    for key in changed:
        held = [(name, now[key]) for name, now, _ in sources if key in now]
        edits[key] = held[0][1] if held else None
        said[key] = tuple(_disputed(key, held))
    return before.changed(edits), said


def _disputed(key: object, held: Sequence[tuple[str, object]]) -> Iterator[Problem]:
    for name, value in held[1:]:
        winner, first = held[0]
        if first != value:
            named = _workload_object(key) if isinstance(key, WorkloadKey) else key
            yield Problem(
                code=str(Code.DUPLICATE_ENDPOINT),
                severity=Severity.WARNING,
                origin=FromSource(name),
                key=named if isinstance(named, ObjectKey) else None,
                expected=f"is known differently by the source {winner}, which comes first and is used",
            )


def _workload_object(key: WorkloadKey) -> ObjectKey:
    return ObjectKey.of(WORKLOAD, key)


def _has(inventory: Inventory, key: ObjectKey) -> bool:
    if key.kind == WORKLOAD:
        return WorkloadKey(key.namespace, key.name) in inventory.workloads
    return key in inventory.slices
