"""What sources bring: how many objects of which kind have changed since they were last looked at."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from delivery.debounce import Matter
from mesh.endpoints import Inventory
from mesh.identity import ProxyName
from mesh.kinds import ADMISSION, ENDPOINT_SLICE, READ_AS, WORKLOAD, Kind
from mesh.objects import ObjectKey, Sourced
from mesh.picture import Picture
from mesh.problems import Problem
from providers.contract import EndpointProvider

ADMISSIONS: Final = "admissions"
ENDPOINT_KINDS: Final = frozenset({WORKLOAD, ENDPOINT_SLICE, *READ_AS, ADMISSION})
"""Kinds of objects that say where something runs, not what it may do."""

Counts = Mapping[tuple[str, Kind], int]
"""Changed objects by source and kind."""


class Specification(Protocol):
    """Where the mesh's objects come from: a directory of manifests first."""

    @property
    def name(self) -> str:
        """Return the name by which people know the source."""
        ...

    def objects(self) -> Mapping[ObjectKey, Sourced]:
        """Return the objects in force, best as a Picture: then what has changed is soon found."""
        ...

    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with them."""
        ...


class Events:
    """The pictures of all sources as they were last looked at."""

    def __init__(self, specification: Specification, providers: Sequence[EndpointProvider]) -> None:
        self._specification = specification
        self._others = tuple(each for each in providers if each.name != specification.name)
        self._objects: Picture[ObjectKey, Sourced] = Picture()
        self._inventories = {each.name: Inventory() for each in self._others}
        self._admitted: Picture[ProxyName, ProxyName] = Picture()

    def take(self, admitted: Mapping[ProxyName, ProxyName]) -> Counts:
        """Return what has changed since the last time."""
        found: Counter[tuple[str, Kind]] = Counter()
        objects = Picture.of(self._specification.objects())
        name = self._specification.name
        found.update((name, key.kind) for key in objects.since(self._objects))
        self._objects = objects
        for each in self._others:
            before, now = self._inventories[each.name], each.inventory()
            found[each.name, WORKLOAD] += len(now.workloads.since(before.workloads))
            found[each.name, ENDPOINT_SLICE] += len(now.slices.since(before.slices))
            self._inventories[each.name] = now
        here = Picture.of(admitted)
        found[ADMISSIONS, ADMISSION] += len(here.since(self._admitted))
        self._admitted = here
        return +found


def matter(events: Counts) -> Matter:
    """Say what changes are about: endpoints alone, or anything else; so is what brought no event."""
    if events and all(kind in ENDPOINT_KINDS for _, kind in events):
        return Matter.ENDPOINTS
    return Matter.POLICY
