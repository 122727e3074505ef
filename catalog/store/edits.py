"""Edits: the difference between the mesh and the contents of a view."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeVar

from catalog.store.settings import Admission, MeshSettings
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import ENDPOINT_SLICE, FORMS, WORKLOAD
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import Tapped

K = TypeVar("K")
V = TypeVar("V")

_SLICES: Final = frozenset(FORMS[ENDPOINT_SLICE])
_WORKLOADS: Final = frozenset(FORMS[WORKLOAD])


@dataclass(frozen=True, slots=True)
class Edits:
    """New values by key, `None` for removed entries; entries not named stay.

    Workloads and slices are ordinary objects. `admissions` has the workloads that may get traffic (see
    `catalog.relations.backends.readiness`), `taps` the tapped requests by service. Applied to an empty view,
    edits are its whole contents.
    """

    objects: Mapping[ObjectKey, SourcedObject | None] = field(default_factory=lambda: MappingProxyType({}))
    admissions: Mapping[ProxyName, Admission | None] = field(default_factory=lambda: MappingProxyType({}))
    settings: MeshSettings | None = None
    taps: Mapping[ServiceKey, Tapped | None] = field(default_factory=lambda: MappingProxyType({}))

    def __bool__(self) -> bool:
        return bool(self.objects or self.admissions or self.settings or self.taps)

    def __len__(self) -> int:
        return len(self.objects) + len(self.admissions) + len(self.taps) + (self.settings is not None)

    def parts(self, size: int) -> Iterator["Edits"]:
        """Yield the edits in parts of at most `size`, or whole if no larger.

        Settings and the surroundings of workloads come first, then slices, admissions and workloads, so
        everything that a workload depends on is present before it. Of each kind removals come first, because
        a new object may reuse a name.
        """
        if len(self) <= size:
            yield self
            return
        if self.settings is not None:
            yield Edits(settings=self.settings)
        ordered = sorted(self.objects.items(), key=lambda item: (_rank(item[0]), item[1] is not None))
        # Workloads last: everything that they depend on is present by then.
        early = {key: sourced_object for key, sourced_object in ordered if key.kind not in _WORKLOADS}
        workloads = {key: sourced_object for key, sourced_object in ordered if key.kind in _WORKLOADS}
        yield from (Edits(objects=part) for part in _parts(early, size))
        yield from (Edits(admissions=part) for part in _parts(self.admissions, size))
        yield from (Edits(objects=part) for part in _parts(workloads, size))
        yield from (Edits(taps=part) for part in _parts(self.taps, size))


def _rank(key: ObjectKey) -> int:
    """Return the position of an object in an edit: EndpointSlices follow all others."""
    return 1 if key.kind in _SLICES else 0


def difference(before: Mapping[K, V], after: Mapping[K, V]) -> dict[K, V | None]:
    """Return the entries changed between two mappings, `None` for removed ones; compares all entries."""
    gone: dict[K, V | None] = {key: None for key in before if key not in after}
    return {**gone, **{key: value for key, value in after.items() if before.get(key) != value}}


def _parts(edits: Mapping[K, V], size: int) -> Iterator[dict[K, V]]:
    left = iter(edits.items())
    while part := dict(itertools.islice(left, size)):
        yield part
