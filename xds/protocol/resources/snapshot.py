"""Snapshots: everything one group of nodes should have, at one moment."""

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
    """A snapshot refers to what is not in it; `missing` says from what, to what type and name."""

    def __init__(self, group: str, missing: tuple[tuple[Resource, TypeUrl, ResourceName], ...]) -> None:
        named = "; ".join(
            f"{resource.type_url.rsplit('.', 1)[1]} {resource.name!r} needs "
            f"{type_url.rsplit('.', 1)[1]} {name!r}"
            for resource, type_url, name in missing[:10]
        )
        super().__init__(f"the snapshot of {group!r} lacks {len(missing)} resources: {named}")
        self.missing = missing


class Snapshot:
    """An immutable set of resources by type and name, put together from parts that others may have as well.

    Streams of one group share the object, what is derived from it included: the version of each type (a
    hash of content: equal in every process) and the step from the snapshot before. What groups have in
    common is derived in its part, once for all of them.
    """

    __slots__ = ("__weakref__", "_before", "_missing", "_shortest_ttl", "_step", "_tables", "parts")

    def __init__(self, parts: tuple[ResourceSet, ...], before: "Snapshot | None" = None) -> None:
        """Put parts together; raise SnapshotError where two have different resources of one type and name."""
        self.parts = parts
        # What it was made from, to look for what is missing in what differs alone.
        self._before = weakref.ref(before) if before is not None and before.is_consistent else None
        self._tables: Mapping[TypeUrl, Resources]
        self._missing: tuple[tuple[Resource, TypeUrl, ResourceName], ...] | None = None
        self._step: tuple[weakref.ref[Snapshot] | None, Step] | None = None
        self._shortest_ttl: tuple[float | None] | None = None  # a tuple once known: all streams ask
        exchanged = None if before is None or self._before is None else _exchanged(parts, before)
        if before is not None and exchanged is not None:
            part, found = exchanged
            self._tables = (
                part.tables
                if len(parts) == 1
                else before.with_tables({each: part.tables[each] for each in found.every})
            )
            self._step, self._missing, self._before = (self._before, found.seen), (), None
        else:
            self._tables = parts[0].tables if len(parts) == 1 else _joined(parts, before)

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> Self:
        """Make a snapshot; raise SnapshotError when two resources of a type have the same name (rule W15)."""
        return cls((ResourceSet.of(resources),))

    @classmethod
    def joined(cls, parts: Sequence[ResourceSet], before: "Snapshot | None" = None) -> Self:
        """Make a snapshot of parts, which it shares; costs as many as they are, and what the small ones hold.

        The same resource may stand in several parts. Raises SnapshotError for two that differ and have one
        type and name. What no part has other than in the snapshot `before` is shared with that.
        """
        return cls(tuple(parts) or (ResourceSet({}),), before)

    def changed(self, put: Iterable[Resource] = (), removed: Iterable[Reference] = ()) -> Self:
        """Return a snapshot with resources added or replaced, and others (type, name) removed.

        What is not touched is shared with this one. Removing what is not there is no error. What is new
        stands in the last part.
        """
        put, gone = tuple(put), tuple(removed)
        new = [each for each in put if each.name not in self.resources(each.type_url)]
        own = [[each for each in put if each.name in part.resources(each.type_url)] for part in self.parts]
        own[-1] += new
        return type(self)(tuple(p.changed(each, gone) for p, each in zip(self.parts, own, strict=True)), self)

    def with_tables(self, others: Mapping[TypeUrl, Resources]) -> Mapping[TypeUrl, Resources]:
        """Return its tables by type, and of some types other ones."""
        return {**self._tables, **others}

    def resources(self, type_url: TypeUrl) -> Resources:
        """Return the resources of a type by name, in the order of their names; empty if there are none."""
        return self._tables.get(type_url, NO_RESOURCES)

    def ordered(self, type_url: TypeUrl) -> tuple[Resource, ...]:
        """Return the resources of a type by name; mostly the same tuple, see `Resources`."""
        return self.resources(type_url).ordered

    def version(self, type_url: TypeUrl) -> Version:
        """Return the version of a type: 16 hexadecimal digits that change if and only if its content does."""
        return self.resources(type_url).version

    def types(self) -> tuple[TypeUrl, ...]:
        """Return the types that have resources, sorted."""
        return tuple(sorted(self._tables))

    def changed_since(self, old: "Snapshot | None") -> Step:
        """Return, by type, the names whose resource is not `old`'s to clients: added, changed or removed.

        What only its maker or the server sees of a resource does not count (see `is_seen_otherwise`): a step
        to a snapshot that is not equal may be without names. The last answer is kept: all the streams of a
        group take the same step.
        """
        if self is old:
            return NO_STEP
        if self._step is not None:
            # A reference that has died is None as well, and must not be taken for a step from nothing.
            reference, changed = self._step
            if (reference() if reference is not None else None) is old and (
                old is not None or reference is None
            ):
                return changed
        changed = {t: Names(each) for t, each in self._tables.items()} if old is None else _changed(old, self)
        self._step = (weakref.ref(old) if old is not None else None, changed)
        return changed

    def versions(self, type_url: TypeUrl) -> Versions:
        """Return the version of each resource of a type, always the same mapping."""
        return self.resources(type_url).versions

    def on_demand(self, type_url: TypeUrl) -> frozenset[ResourceName]:
        """Return the names of a type that a wildcard does not show."""
        table = self.resources(type_url)
        if not table.special:
            return NO_NAMES
        return Names(name for name in table.special if table[name].on_demand)

    def visible(self, type_url: TypeUrl) -> tuple[Resource, ...]:
        """Return what a wildcard shows of a type: all but the resources on demand, in order of names."""
        everything = self.ordered(type_url)
        if not self.on_demand(type_url):
            return everything
        return tuple(resource for resource in everything if not resource.on_demand)

    def living(self, type_url: TypeUrl) -> tuple[Resource, ...]:
        """Return the resources of a type that have a time to live, in order of names."""
        table = self.resources(type_url)
        return tuple(table[name] for name in sorted(table.special) if table[name].ttl_seconds is not None)

    @property
    def shortest_ttl(self) -> float | None:
        """The least time to live of any resource, in seconds; None if none has one."""
        if self._shortest_ttl is None:
            lives = (t[name].ttl_seconds for t in self._tables.values() if t.special for name in t.special)
            self._shortest_ttl = (min((each for each in lives if each is not None), default=None),)
        return self._shortest_ttl[0]

    def missing(self) -> tuple[tuple[Resource, TypeUrl, ResourceName], ...]:
        """Return the references that no resource answers, as (from, type, name); empty when consistent.

        More resources than are referred to are no fault: clients drop references before we do. It is
        looked for once: whoever makes a snapshot asks, and whoever publishes it. What a part does not
        answer itself is known to the part.
        """
        if self._missing is None:
            before = None if self._before is None else self._before()
            few = sum(len(part.needs()) for part in self.parts) <= FLAT
            suspects = self._needs() if few or before is None else self._lost_since(before)
            found = {
                (source.type_url, source.name, reference): (source, *reference)
                for reference in suspects
                if reference[1] not in self.resources(reference[0])
                for part in self.parts
                for source in part.referring(reference)
            }
            self._missing, self._before = tuple(found[key] for key in sorted(found)), None
        return self._missing

    @property
    def is_consistent(self) -> bool:
        """Say whether it is known that nothing is missing."""
        return self._missing == ()

    def _needs(self) -> Iterator[Reference]:
        """Yield what parts need of each other."""
        return (reference for part in self.parts for reference in part.needs())

    def _lost_since(self, before: "Snapshot") -> Iterator[Reference]:
        """Yield what may be missing other than in a consistent snapshot: what is gone, and what is new."""
        needs = [part.needs() for part in self.parts]
        known = [part.needs() for part in before.parts]
        for type_url, names in self.changed_since(before).items():
            yield from ((type_url, name) for name in names if any((type_url, name) in each for each in needs))
        for each in needs:
            if not any(each is other for other in known):
                yield from each.difference(*known)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Snapshot):
            return False
        return self is other or (not self.changed_since(other) and self._tables == other._tables)

    def __hash__(self) -> int:
        return hash(tuple((each, self.version(each)) for each in self.types()))


def _exchanged(parts: tuple[ResourceSet, ...], before: Snapshot) -> tuple[ResourceSet, Difference] | None:
    """Return the only part that is another one, and how; None where that is not all there is to be seen.

    It is where all groups that share a part have the next form of it: what that comes to for one of them it
    comes to for all, and is found once. Its types must stand in it alone.
    """
    if len(parts) != len(before.parts):
        return None
    others = [(old, new) for old, new in zip(before.parts, parts, strict=True) if old is not new]
    if len(others) != 1:
        return None
    ((old, new),) = others
    found = new.exchange_for(old)
    if found is None or any(each in part.tables for part in parts if part is not new for each in found.every):
        return None
    return new, found


def _joined(parts: tuple[ResourceSet, ...], before: Snapshot | None) -> Mapping[TypeUrl, Resources]:
    if before is not None and len(before.parts) == len(parts):
        return _rejoined(parts, before)
    earlier = {} if before is None else _by_type(before.parts)
    found: dict[TypeUrl, Resources] = {}
    for type_url, tables in _by_type(parts).items():
        known = earlier.get(type_url, [])
        if before is not None and len(known) == len(tables) and all(map(is_, known, tables)):
            found[type_url] = before.resources(type_url)
        else:
            found[type_url] = together(tables) if len(tables) > 1 else tables[0]
    return found


def _rejoined(parts: tuple[ResourceSet, ...], before: Snapshot) -> Mapping[TypeUrl, Resources]:
    """Join parts in the place of as many: only the types of which a part has another table are looked at."""
    other = {
        type_url: None
        for old, new in zip(before.parts, parts, strict=True)
        if old is not new
        for type_url in (*old.tables, *new.tables)
        if old.tables.get(type_url) is not new.tables.get(type_url)
    }
    found = {type_url: before.resources(type_url) for type_url in before.types() if type_url not in other}
    for type_url in other:
        tables = [part.tables[type_url] for part in parts if type_url in part.tables]
        if tables:
            found[type_url] = together(tables) if len(tables) > 1 else tables[0]
    return found


def _by_type(parts: tuple[ResourceSet, ...]) -> dict[TypeUrl, list[Resources]]:
    found: dict[TypeUrl, list[Resources]] = {}
    for part in parts:
        for type_url, table in part.tables.items():
            found.setdefault(type_url, []).append(table)
    return found


def _changed(old: Snapshot, new: Snapshot) -> Step:
    """Return what differs: parts that stand in both are not looked at."""
    shared = {*old.parts} & {*new.parts}
    before = [part for part in old.parts if part not in shared]
    after = [part for part in new.parts if part not in shared]
    steps: list[Step] = [mine.changed_since(theirs) for theirs, mine in zip(before, after, strict=False)]
    alone = (*before[len(after) :], *after[len(before) :])
    steps += [{t: Names(table) for t, table in part.tables.items()} for part in alone]
    found: dict[TypeUrl, Names] = {}
    several: set[TypeUrl] = set()  # in which a name may have moved from part to part
    for step in steps:
        for type_url, names in step.items():
            if type_url in found or _is_divided(old, type_url) or _is_divided(new, type_url):
                several.add(type_url)
            found[type_url] = found[type_url] | names if type_url in found else names
    unlike = {t: _unlike(found[t], old.resources(t), new.resources(t)) for t in several}
    return {t: unlike.get(t, names) for t, names in found.items() if unlike.get(t, names)}


def _is_divided(snapshot: Snapshot, type_url: TypeUrl) -> bool:
    """Say whether more than one part has resources of a type."""
    return sum(type_url in part.tables for part in snapshot.parts) > 1


def _unlike(names: Names, before: Resources, after: Resources) -> Names:
    """Return those of some names whose resource is another one; what moved from part to part is not."""
    same = [name for name in names if not is_seen_otherwise(before.get(name), after.get(name))]
    return names.difference(same) if same else names
