"""Immutable sets of resources, which any number of snapshots can share."""

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import ne
from types import MappingProxyType
from typing import Final, Self

from xds.protocol.resources.layers import FLAT
from xds.protocol.resources.missing_references import Counts, References, needs_after, needs_of
from xds.protocol.resources.name_sets import Names
from xds.protocol.resources.resource import Reference, Resource, ResourceName, TypeUrl, is_seen_otherwise
from xds.protocol.resources.resources import NO_RESOURCES, Resources, SnapshotError

Step = Mapping[TypeUrl, Names]
"""By type, the names of added, changed or removed resources."""

NO_STEP: Final[Step] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two sets: as far as clients can see (`seen`), and by equality (`every`)."""

    seen: Step
    every: Step


NO_DIFFERENCE: Final = Difference(NO_STEP, NO_STEP)


class ResourceSet:
    """An immutable set of resources by type and name, which any number of snapshots can share.

    The cost of a change is the number of changed resources. Derived values are kept: the step from the set
    before, and the references without a target in the set.
    """

    __slots__ = ("__weakref__", "_counts", "_exchange", "_needs", "_step", "tables")

    def __init__(
        self,
        tables: Mapping[TypeUrl, Resources],
        step: tuple["weakref.ref[ResourceSet]", Difference] | None = None,
        needs: References | None = None,
        counts: Counts | None = None,
    ) -> None:
        self.tables = tables
        self._step = step
        self._exchange: tuple[Difference, bool] | None = None
        self._needs = needs
        self._counts = counts

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> Self:
        """Make a set; raise SnapshotError for two resources of one type and name (rule W15)."""
        by_type: dict[TypeUrl, dict[ResourceName, Resource]] = {}
        for resource in resources:
            named = by_type.setdefault(resource.type_url, {})
            if resource.name in named:
                raise SnapshotError(f"two resources of {resource.type_url} are named {resource.name!r}")
            named[resource.name] = resource
        return cls({kind: Resources(dict(sorted(named.items()))) for kind, named in by_type.items()})

    def changed(self, put: Iterable[Resource] = (), removed: Iterable[Reference] = ()) -> "ResourceSet":
        """Return a set with resources added or replaced, and others (type, name) removed.

        Removing a missing resource is not an error. The new set shares the tables of unchanged types.
        """
        changes: dict[TypeUrl, dict[ResourceName, Resource | None]] = {}
        for type_url, name in removed:
            if name in self.resources(type_url):
                changes.setdefault(type_url, {})[name] = None
        for resource in put:
            changes.setdefault(resource.type_url, {})[resource.name] = resource
        if not changes:
            return self
        made = weakref.ref(self), self.difference_to(changes)
        tables = {**self.tables, **{t: self.resources(t).changed(change) for t, change in changes.items()}}
        tables = {type_url: table for type_url, table in tables.items() if table}
        if self._needs is not None and all(self.refers_alike(t, change) for t, change in changes.items()):
            return ResourceSet(tables, made, self._needs, self._counts)
        if self._needs is None or self._counts is None:
            return ResourceSet(tables, made)
        return ResourceSet(
            tables, made, *needs_after(self._needs, self._counts, self.tables, tables, changes)
        )

    def refers_alike(self, type_url: TypeUrl, named: Mapping[ResourceName, Resource | None]) -> bool:
        """Return whether each resource replaces one with equal references.

        Endpoints always do, because they are without references.
        """
        there = self.resources(type_url)
        return all(
            now is not None and (was := there.get(name)) is not None and was.references == now.references
            for name, now in named.items()
        )

    def difference_to(self, changes: Mapping[TypeUrl, Mapping[ResourceName, Resource | None]]) -> Difference:
        """Return the difference of this set to one with these resources (None: removed)."""
        seen, every = dict[TypeUrl, Names](), dict[TypeUrl, Names]()
        for type_url, named in changes.items():
            there = self.resources(type_url)
            pairs = ((name, there.get(name), now) for name, now in named.items())
            others = [pair for pair in pairs if pair[1] != pair[2]]
            visible = [name for name, was, now in others if is_seen_otherwise(was, now)]
            if others:
                every[type_url] = Names(name for name, _, _ in others)
            if visible:
                seen[type_url] = every[type_url] if len(visible) == len(others) else Names(visible)
        return Difference(every if seen == every else seen, every)

    def resources(self, type_url: TypeUrl) -> Resources:
        """Return the resources of a type; possibly an empty table."""
        return self.tables.get(type_url, NO_RESOURCES)

    def changed_since(self, old: "ResourceSet") -> Step:
        """Return the names with a difference from another set visible to clients; see `difference`."""
        return self.difference(old).seen

    def difference(self, old: "ResourceSet") -> Difference:
        """Return the difference to another set.

        The last result, and the step from the set before, are cached.
        """
        if self is old:
            return NO_DIFFERENCE
        if self._step is None or self._step[0]() is not old:
            result: dict[TypeUrl, dict[ResourceName, Resource | None]] = {}
            for type_url in {*self.tables, *old.tables}:
                mine, theirs = self.resources(type_url), old.resources(type_url)
                if mine is not theirs:
                    result[type_url] = {name: mine.get(name) for name in mine.differing(theirs, ne)}
            self._step = (weakref.ref(old), old.difference_to(result))
        return self._step[1]

    def exchange_for(self, old: "ResourceSet") -> Difference | None:
        """Return the difference to a set if this set can replace it with equal references, else None.

        Both sets have the same names, and changed resources have equal references, as with moved endpoints.
        The last result is cached for all snapshots with the set.
        """
        difference = self.difference(old)
        if self._exchange is None or self._exchange[0] is not difference:
            every = difference.every.items()
            named = {t: {name: self.resources(t).get(name) for name in names} for t, names in every}
            self._exchange = difference, all(old.refers_alike(t, resources) for t, resources in named.items())
        return difference if self._exchange[1] else None

    def needs(self) -> References:
        """Return the references of the set's resources without a target in the set."""
        if self._needs is None:
            self._needs, counts = needs_of(self.tables)
            if sum(map(len, self.tables.values())) > FLAT:  # fewer are counted again when they change
                self._counts = counts
        return self._needs

    def referring(self, reference: Reference) -> tuple[Resource, ...]:
        """Return the resources with this reference; linear in the size of the set."""
        every = (resource for table in self.tables.values() for resource in table.values())
        return tuple(resource for resource in every if reference in resource.references)
