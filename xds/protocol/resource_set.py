"""Resources that stand together in snapshots: made once, shared by all the snapshots that they stand in."""

import weakref
from collections.abc import Iterable, Mapping
from operator import ne
from types import MappingProxyType
from typing import Final, Self

from xds.protocol.layers import Layers
from xds.protocol.name_sets import Names
from xds.protocol.resource import Reference, Resource, ResourceName, TypeUrl
from xds.protocol.resources import NO_RESOURCES, Resources, SnapshotError

Step = Mapping[TypeUrl, Names]
"""By type, the names whose resource is another one, or was not there, or is there no longer."""

NO_STEP: Final[Step] = MappingProxyType({})

_Changes = Mapping[TypeUrl, Mapping[ResourceName, Resource | None]]


class ResourceSet:
    """An immutable set of resources by type and name, for any number of snapshots.

    A change costs what changes. What is derived is kept: the step from the set before, and what its
    resources refer to that is not in it.
    """

    __slots__ = ("__weakref__", "_needs", "_step", "tables")

    def __init__(
        self,
        tables: Mapping[TypeUrl, Resources],
        step: tuple["weakref.ref[ResourceSet]", Step] | None = None,
        needs: "_Needs | None" = None,
    ) -> None:
        self.tables = tables
        self._step = step
        self._needs = needs

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> Self:
        """Make a set; raise SnapshotError when two resources of a type have the same name (rule W15)."""
        by_type: dict[TypeUrl, dict[ResourceName, Resource]] = {}
        for resource in resources:
            named = by_type.setdefault(resource.type_url, {})
            if resource.name in named:
                raise SnapshotError(f"two resources of {resource.type_url} are named {resource.name!r}")
            named[resource.name] = resource
        return cls({kind: Resources(dict(sorted(named.items()))) for kind, named in by_type.items()})

    def changed(self, put: Iterable[Resource] = (), removed: Iterable[Reference] = ()) -> "ResourceSet":
        """Return a set with resources added or replaced, and others (type, name) removed.

        Removing what is not there is no error. The types that are not touched are shared with this one.
        """
        changes: dict[TypeUrl, dict[ResourceName, Resource | None]] = {}
        for type_url, name in removed:
            if name in self.resources(type_url):
                changes.setdefault(type_url, {})[name] = None
        for resource in put:
            changes.setdefault(resource.type_url, {})[resource.name] = resource
        if not changes:
            return self
        tables = {**self.tables, **{t: self.resources(t).changed(each) for t, each in changes.items()}}
        tables = {type_url: table for type_url, table in tables.items() if table}
        other = {
            type_url: Names(name for name, now in named.items() if now != self.resources(type_url).get(name))
            for type_url, named in changes.items()
        }
        step = {type_url: names for type_url, names in other.items() if names}
        needs = None if self._needs is None else self._needs.changed(self.tables, tables, changes)
        return ResourceSet(tables, (weakref.ref(self), step), needs)

    def resources(self, type_url: TypeUrl) -> Resources:
        """Return the resources of a type; none if there are none."""
        return self.tables.get(type_url, NO_RESOURCES)

    def changed_since(self, old: "ResourceSet") -> Step:
        """Return what differs from another set; the last answer is kept, and the step that made this one."""
        if self is old:
            return NO_STEP
        if self._step is None or self._step[0]() is not old:
            found = {}
            for type_url in {*self.tables, *old.tables}:
                mine, theirs = self.resources(type_url), old.resources(type_url)
                if mine is not theirs and (names := Names(mine.differing(theirs, ne))):
                    found[type_url] = names
            self._step = (weakref.ref(old), found)
        return self._step[1]

    def needs(self) -> frozenset[Reference]:
        """Return what its resources refer to that is not in it."""
        if self._needs is None:
            self._needs = _Needs.of(self.tables)
        return self._needs.open

    def referring(self, reference: Reference) -> tuple[Resource, ...]:
        """Return the resources that refer to one; it goes through all there are."""
        every = (each for table in self.tables.values() for each in table.values())
        return tuple(each for each in every if reference in each.references)


class _Needs:
    """How many resources of a set refer to each reference, and which of these it does not answer itself."""

    __slots__ = ("_counts", "open")

    def __init__(self, counts: Layers[Reference, int], open_: frozenset[Reference]) -> None:
        self._counts = counts
        self.open = open_

    @classmethod
    def of(cls, tables: Mapping[TypeUrl, Resources]) -> Self:
        counts: dict[Reference, int] = {}
        for table in tables.values():
            for each in table.values():
                for reference in each.references:
                    counts[reference] = counts.get(reference, 0) + 1
        missing = frozenset(each for each in counts if not _answered(each, tables))
        return cls(Layers(dict(sorted(counts.items()))), missing)

    def changed(
        self,
        before: Mapping[TypeUrl, Resources],
        after: Mapping[TypeUrl, Resources],
        changes: _Changes,
    ) -> "_Needs":
        """Return the needs after changes: what is looked at is what changed, and what that refers to."""
        counts: dict[Reference, int] = {}
        for type_url, named in changes.items():
            for name, now in named.items():
                old = before.get(type_url, NO_RESOURCES).get(name)
                for resource, by in ((old, -1), (now, 1)):
                    for reference in resource.references if resource is not None else ():
                        counts[reference] = counts.get(reference, self._counts.get(reference, 0)) + by
        known = self._counts.changed({each: number or None for each, number in counts.items()})
        looked = {*counts, *((type_url, name) for type_url, named in changes.items() for name in named)}
        still = {each for each in looked if each in known and not _answered(each, after)}
        return _Needs(known, self.open if still == looked & self.open else self.open - looked | still)


def _answered(reference: Reference, tables: Mapping[TypeUrl, Resources]) -> bool:
    type_url, name = reference
    return name in tables.get(type_url, NO_RESOURCES)
