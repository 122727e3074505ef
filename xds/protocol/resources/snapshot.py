"""Snapshots: the whole configuration of one group of nodes at one moment."""

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Self

from xds.protocol.resources.layers import FLAT
from xds.protocol.resources.name_sets import NO_NAMES, Names
from xds.protocol.resources.resource import (
    Reference,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
    is_seen_otherwise,
)
from xds.protocol.resources.resource_set import NO_STEP, Difference, ResourceSet, Step
from xds.protocol.resources.resources import NO_RESOURCES, Resources, SnapshotError, together
from xds.protocol.resources.versions import Versions


class InconsistentError(SnapshotError):
    """Error for a snapshot with references to missing resources.

    `missing` has (referring resource, type, name).
    """

    def __init__(self, group: str, missing: tuple[tuple[Resource, TypeUrl, ResourceName], ...]) -> None:
        named = "; ".join(
            f"{resource.type_url.rsplit('.', 1)[1]} {resource.name!r} needs "
            f"{type_url.rsplit('.', 1)[1]} {name!r}"
            for resource, type_url, name in missing[:10]
        )
        super().__init__(f"the snapshot of {group!r} lacks {len(missing)} resources: {named}")
        self.missing = missing


class Snapshot:
    """An immutable set of resources by type and name, joined from parts that snapshots can share.

    All streams of a group share one object with its derived values: the version of each type (a hash of
    content, equal in every process) and the step from the snapshot before. Values of a shared part are
    computed once for all groups.
    """

    __slots__ = ("__weakref__", "_before", "_missing", "_shortest_ttl", "_step", "_tables", "parts")

    def __init__(self, parts: tuple[ResourceSet, ...], before: "Snapshot | None" = None) -> None:
        """Join parts; raise SnapshotError if two have different resources of one type and name."""
        self.parts = parts
        # The snapshot before, so that the search for missing references can be limited to the difference.
        self._before = weakref.ref(before) if before is not None and before.is_consistent else None
        self._tables: Mapping[TypeUrl, Resources]
        self._missing: tuple[tuple[Resource, TypeUrl, ResourceName], ...] | None = None
        self._step: tuple[weakref.ref[Snapshot] | None, Step] | None = None
        self._shortest_ttl: tuple[float | None] | None = None  # a tuple once computed, for all streams
        exchanged = None if before is None or self._before is None else _exchanged(parts, before)
        if before is not None and exchanged is not None:
            part, difference = exchanged
            self._tables = (
                part.tables
                if len(parts) == 1
                else before.with_tables({type_url: part.tables[type_url] for type_url in difference.every})
            )
            self._step, self._missing, self._before = (self._before, difference.seen), (), None
        else:
            self._tables = parts[0].tables if len(parts) == 1 else _joined(parts, before)

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> Self:
        """Make a snapshot; raise SnapshotError for two resources of one type and name (rule W15)."""
        return cls((ResourceSet.of(resources),))

    @classmethod
    def joined(cls, parts: Sequence[ResourceSet], before: "Snapshot | None" = None) -> Self:
        """Make a snapshot with shared parts.

        The cost is the number of parts and the size of the small parts.

        An equal resource may be in several parts. Raises SnapshotError for two different ones under one type
        and name. Tables unchanged since the snapshot `before` are shared with `before`.
        """
        return cls(tuple(parts) or (ResourceSet({}),), before)

    def changed(self, put: Iterable[Resource] = (), removed: Iterable[Reference] = ()) -> Self:
        """Return a snapshot with resources added or replaced, and others (type, name) removed.

        Unchanged tables are shared. Removing a missing resource is not an error. Added resources go to the
        last part.
        """
        put, gone = tuple(put), tuple(removed)
        new = [resource for resource in put if resource.name not in self.resources(resource.type_url)]
        own = [
            [resource for resource in put if resource.name in part.resources(resource.type_url)]
            for part in self.parts
        ]
        own[-1] += new
        return type(self)(
            tuple(p.changed(resources, gone) for p, resources in zip(self.parts, own, strict=True)), self
        )

    def with_tables(self, others: Mapping[TypeUrl, Resources]) -> Mapping[TypeUrl, Resources]:
        """Return the tables of resources by type, with some tables replaced by `others`."""
        return {**self._tables, **others}

    def resources(self, type_url: TypeUrl) -> Resources:
        """Return the resources of a type, in the order of their names; possibly an empty table."""
        return self._tables.get(type_url, NO_RESOURCES)

    def ordered(self, type_url: TypeUrl) -> tuple[Resource, ...]:
        """Return the resources of a type in the order of their names; usually cached, see `Resources`."""
        return self.resources(type_url).ordered

    def version(self, type_url: TypeUrl) -> Version:
        """Return the version of a type.

        The version has 16 hexadecimal digits, for example `9c41d07be8563f2a`, and changes exactly with the
        content.
        """
        return self.resources(type_url).version

    def types(self) -> tuple[TypeUrl, ...]:
        """Return the types with resources in the snapshot, sorted."""
        return tuple(sorted(self._tables))

    def changed_since(self, old: "Snapshot | None") -> Step:
        """Return, by type, the names added, changed or removed since `old`, as visible to clients.

        Changes visible only to the server or a resource's maker do not count (see `is_seen_otherwise`), so
        the step to an unequal snapshot may be empty. The last result is cached, because all streams of a
        group take the same step.
        """
        if self is old:
            return NO_STEP
        if self._step is not None:
            # A dead weak reference returns None too, and must not be mistaken for the step from no snapshot.
            reference, changed = self._step
            if (reference() if reference is not None else None) is old and (
                old is not None or reference is None
            ):
                return changed
        changed = (
            {t: Names(table) for t, table in self._tables.items()} if old is None else _changed(old, self)
        )
        self._step = (weakref.ref(old) if old is not None else None, changed)
        return changed

    def versions(self, type_url: TypeUrl) -> Versions:
        """Return the version of each resource of a type, always as the same mapping object."""
        return self.resources(type_url).versions

    def on_demand(self, type_url: TypeUrl) -> frozenset[ResourceName]:
        """Return the names of a type that a wildcard subscription does not cover."""
        table = self.resources(type_url)
        if not table.special:
            return NO_NAMES
        return Names(name for name in table.special if table[name].on_demand)

    def visible(self, type_url: TypeUrl) -> tuple[Resource, ...]:
        """Return the resources of a type covered by a wildcard, in the order of their names."""
        everything = self.ordered(type_url)
        if not self.on_demand(type_url):
            return everything
        return tuple(resource for resource in everything if not resource.on_demand)

    def living(self, type_url: TypeUrl) -> tuple[Resource, ...]:
        """Return the resources of a type with a time to live, in order of names."""
        table = self.resources(type_url)
        return tuple(table[name] for name in sorted(table.special) if table[name].ttl_seconds is not None)

    @property
    def shortest_ttl(self) -> float | None:
        """Return the shortest time to live of any resource, in seconds; None without any."""
        if self._shortest_ttl is None:
            lives = (t[name].ttl_seconds for t in self._tables.values() if t.special for name in t.special)
            self._shortest_ttl = (min((life for life in lives if life is not None), default=None),)
        return self._shortest_ttl[0]

    def missing(self) -> tuple[tuple[Resource, TypeUrl, ResourceName], ...]:
        """Return the references without a target, as (referring resource, type, name); empty if consistent.

        Resources without a reference are not a fault, because clients drop references before the server does.
        The result is cached for the maker of a snapshot and the publisher. Unresolved references within a
        part are cached by the part.
        """
        if self._missing is None:
            before = None if self._before is None else self._before()
            few = sum(len(part.needs()) for part in self.parts) <= FLAT
            suspects = self._needs() if few or before is None else self._lost_since(before)
            result = {
                (source.type_url, source.name, reference): (source, *reference)
                for reference in suspects
                if reference[1] not in self.resources(reference[0])
                for part in self.parts
                for source in part.referring(reference)
            }
            self._missing, self._before = tuple(result[key] for key in sorted(result)), None
        return self._missing

    @property
    def is_consistent(self) -> bool:
        """Return whether the snapshot is known to refer to no missing resource."""
        return self._missing == ()

    def _needs(self) -> Iterator[Reference]:
        """Yield the references to resources missing in the referring resource's own part."""
        return (reference for part in self.parts for reference in part.needs())

    def _lost_since(self, before: "Snapshot") -> Iterator[Reference]:
        """Yield the references that may be missing now, given that the snapshot `before` is consistent.

        These are references to removed targets, and new references.
        """
        needs = [part.needs() for part in self.parts]
        known = [part.needs() for part in before.parts]
        for type_url, names in self.changed_since(before).items():
            yield from ((type_url, name) for name in names if any((type_url, name) in need for need in needs))
        for need in needs:
            if not any(need is other for other in known):
                yield from need.difference(*known)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Snapshot):
            return False
        return self is other or (not self.changed_since(other) and self._tables == other._tables)

    def __hash__(self) -> int:
        return hash(tuple((type_url, self.version(type_url)) for type_url in self.types()))


def _exchanged(parts: tuple[ResourceSet, ...], before: Snapshot) -> tuple[ResourceSet, Difference] | None:
    """Return the only replaced part, with its difference; None in more complicated cases.

    This is the fast path for groups with a common part: the difference of the part is computed once, and is
    the difference of every group's snapshot, provided that other parts do not have resources of these types.
    """
    if len(parts) != len(before.parts):
        return None
    others = [(old, new) for old, new in zip(before.parts, parts, strict=True) if old is not new]
    if len(others) != 1:
        return None
    ((old, new),) = others
    difference = new.exchange_for(old)
    if difference is None or any(
        type_url in part.tables for part in parts if part is not new for type_url in difference.every
    ):
        return None
    return new, difference


def _joined(parts: tuple[ResourceSet, ...], before: Snapshot | None) -> Mapping[TypeUrl, Resources]:
    if before is not None and len(before.parts) == len(parts):
        return _rejoined(parts, before)
    earlier = {} if before is None else _by_type(before.parts)
    result: dict[TypeUrl, Resources] = {}
    for type_url, tables in _by_type(parts).items():
        known = earlier.get(type_url, [])
        if before is not None and len(known) == len(tables) and all(map(is_, known, tables)):
            result[type_url] = before.resources(type_url)
        else:
            result[type_url] = together(tables) if len(tables) > 1 else tables[0]
    return result


def _rejoined(parts: tuple[ResourceSet, ...], before: Snapshot) -> Mapping[TypeUrl, Resources]:
    """Join the same number of parts as before; only types with another table in some part are examined."""
    other = {
        type_url: None
        for old, new in zip(before.parts, parts, strict=True)
        if old is not new
        for type_url in (*old.tables, *new.tables)
        if old.tables.get(type_url) is not new.tables.get(type_url)
    }
    result = {type_url: before.resources(type_url) for type_url in before.types() if type_url not in other}
    for type_url in other:
        tables = [part.tables[type_url] for part in parts if type_url in part.tables]
        if tables:
            result[type_url] = together(tables) if len(tables) > 1 else tables[0]
    return result


def _by_type(parts: tuple[ResourceSet, ...]) -> dict[TypeUrl, list[Resources]]:
    result: dict[TypeUrl, list[Resources]] = {}
    for part in parts:
        for type_url, table in part.tables.items():
            result.setdefault(type_url, []).append(table)
    return result


def _changed(old: Snapshot, new: Snapshot) -> Step:
    """Return the difference of two snapshots visible to clients; parts that both contain are skipped."""
    shared = {*old.parts} & {*new.parts}
    before = [part for part in old.parts if part not in shared]
    after = [part for part in new.parts if part not in shared]
    steps: list[Step] = [mine.changed_since(theirs) for theirs, mine in zip(before, after, strict=False)]
    alone = (*before[len(after) :], *after[len(before) :])
    steps += [{t: Names(table) for t, table in part.tables.items()} for part in alone]
    result: dict[TypeUrl, Names] = {}
    several: set[TypeUrl] = set()  # types in which a name may have moved between parts
    for step in steps:
        for type_url, names in step.items():
            if type_url in result or _is_divided(old, type_url) or _is_divided(new, type_url):
                several.add(type_url)
            result[type_url] = result[type_url] | names if type_url in result else names
    unlike = {t: _unlike(result[t], old.resources(t), new.resources(t)) for t in several}
    return {t: unlike.get(t, names) for t, names in result.items() if unlike.get(t, names)}


def _is_divided(snapshot: Snapshot, type_url: TypeUrl) -> bool:
    """Return whether several parts have resources of a type."""
    return sum(type_url in part.tables for part in snapshot.parts) > 1


def _unlike(names: Names, before: Resources, after: Resources) -> Names:
    """Return the names with a visible difference; a resource moved between parts counts as unchanged."""
    same = [name for name in names if not is_seen_otherwise(before.get(name), after.get(name))]
    return names.difference(same) if same else names
