"""Snapshots: everything one group of nodes should have, at one moment."""

import hashlib
import weakref
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Self

from xds.errors import XdsError
from xds.protocol.resource import Reference, Resource, ResourceName, TypeUrl, Version

_NOTHING: Mapping[ResourceName, Resource] = MappingProxyType({})


class SnapshotError(XdsError, ValueError):
    """Resources that cannot stand in one snapshot."""


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
    """An immutable set of resources by type and name.

    Streams of one group share the object, what is derived from it included: the version of each type (a
    hash of content: equal in every process) and the step from the snapshot before.
    """

    __slots__ = (
        "__weakref__",
        "_by_type",
        "_each_version",
        "_missing",
        "_on_demand",
        "_ordered",
        "_shortest_ttl",
        "_step",
        "_versions",
    )

    def __init__(
        self,
        by_type: Mapping[TypeUrl, Mapping[ResourceName, Resource]],
        versions: Mapping[TypeUrl, Version] = MappingProxyType({}),
    ) -> None:
        self._by_type = by_type
        self._versions: dict[TypeUrl, Version] = dict(versions)
        self._shortest_ttl: tuple[float | None] | None = None  # a tuple once known: all streams ask
        self._ordered: dict[TypeUrl, tuple[Resource, ...]] = {}
        self._each_version: dict[TypeUrl, Mapping[ResourceName, Version]] = {}
        self._on_demand: dict[TypeUrl, frozenset[ResourceName]] = {}
        self._missing: tuple[tuple[Resource, TypeUrl, ResourceName], ...] | None = None
        self._step: tuple[weakref.ref[Snapshot] | None, Mapping[TypeUrl, frozenset[ResourceName]]] | None
        self._step = None

    @classmethod
    def of(
        cls, resources: Iterable[Resource], versions: Mapping[TypeUrl, Version] = MappingProxyType({})
    ) -> Self:
        """Make a snapshot; raise SnapshotError when two resources of a type have the same name (rule W15).

        `versions` names versions of types for whoever has versions of their own; whoever does must change
        them with the content. A type without one has a hash of its content.
        """
        by_type: dict[TypeUrl, dict[ResourceName, Resource]] = {}
        for resource in resources:
            named = by_type.setdefault(resource.type_url, {})
            if resource.name in named:
                raise SnapshotError(f"two resources of {resource.type_url} are named {resource.name!r}")
            named[resource.name] = resource
        return cls(
            {type_url: MappingProxyType(dict(sorted(named.items()))) for type_url, named in by_type.items()},
            versions,
        )

    def changed(self, put: Iterable[Resource] = (), removed: Iterable[Reference] = ()) -> Self:
        """Return a snapshot with resources added or replaced, and others (type, name) removed.

        The types that are not touched are shared with this one, their versions included. Removing what is
        not there is no error.
        """
        touched: dict[TypeUrl, dict[ResourceName, Resource]] = {}

        def named(type_url: TypeUrl) -> dict[ResourceName, Resource]:
            if type_url not in touched:
                touched[type_url] = dict(self.resources(type_url))
            return touched[type_url]

        for type_url, name in removed:
            named(type_url).pop(name, None)
        for resource in put:
            named(resource.type_url)[resource.name] = resource
        # Sorting what is nearly in order is cheap: a push must cost what changed.
        by_type = {
            **self._by_type,
            **{type_url: MappingProxyType(dict(sorted(each.items()))) for type_url, each in touched.items()},
        }
        kept = {type_url: version for type_url, version in self._versions.items() if type_url not in touched}
        return type(self)({t: each for t, each in by_type.items() if each}, kept)

    def resources(self, type_url: TypeUrl) -> Mapping[ResourceName, Resource]:
        """Return the resources of a type by name, in the order of their names; empty if there are none."""
        return self._by_type.get(type_url, _NOTHING)

    def ordered(self, type_url: TypeUrl) -> tuple[Resource, ...]:
        """Return the resources of a type in the order of their names, always the same tuple."""
        found = self._ordered.get(type_url)
        if found is None:
            found = self._ordered[type_url] = tuple(self.resources(type_url).values())
        return found

    def version(self, type_url: TypeUrl) -> Version:
        """Return the version of a type: 16 hexadecimal digits that change if and only if its content does."""
        found = self._versions.get(type_url)
        if found is None:
            found = self._versions[type_url] = version_of(self.ordered(type_url))
        return found

    def types(self) -> tuple[TypeUrl, ...]:
        """Return the types that have resources, sorted."""
        return tuple(sorted(self._by_type))

    def changed_since(self, old: "Snapshot | None") -> Mapping[TypeUrl, frozenset[ResourceName]]:
        """Return, by type, the names whose resource differs from `old`'s: added, changed or removed.

        The last answer is kept: all the streams of a group take the same step.
        """
        if self._step is not None:
            # A reference that has died is None as well, and must not be taken for a step from nothing.
            reference, changed = self._step
            if (reference() if reference is not None else None) is old and (
                old is not None or reference is None
            ):
                return changed
        changed = _changed(old, self)
        self._step = (weakref.ref(old) if old is not None else None, changed)
        return changed

    def versions(self, type_url: TypeUrl) -> Mapping[ResourceName, Version]:
        """Return the version of each resource of a type, always the same mapping."""
        found = self._each_version.get(type_url)
        if found is None:
            found = self._each_version[type_url] = {
                name: resource.version for name, resource in self.resources(type_url).items()
            }
        return found

    def on_demand(self, type_url: TypeUrl) -> frozenset[ResourceName]:
        """Return the names of a type that a wildcard does not show."""
        found = self._on_demand.get(type_url)
        if found is None:
            found = self._on_demand[type_url] = frozenset(
                resource.name for resource in self.ordered(type_url) if resource.on_demand
            )
        return found

    def visible(self, type_url: TypeUrl) -> tuple[Resource, ...]:
        """Return what a wildcard shows of a type: all but the resources on demand, in order of names."""
        everything = self.ordered(type_url)
        if not self.on_demand(type_url):
            return everything
        return tuple(resource for resource in everything if not resource.on_demand)

    @property
    def shortest_ttl(self) -> float | None:
        """The least time to live of any resource, in seconds; None if none has one."""
        if self._shortest_ttl is None:
            lives = (
                r.ttl_seconds for t in self._by_type for r in self.ordered(t) if r.ttl_seconds is not None
            )
            self._shortest_ttl = (min(lives, default=None),)
        return self._shortest_ttl[0]

    def missing(self) -> tuple[tuple[Resource, TypeUrl, ResourceName], ...]:
        """Return the references that no resource answers, as (from, type, name); empty when consistent.

        More resources than are referred to are no fault: clients drop references before we do. It is
        looked for once: whoever makes a snapshot asks, and whoever publishes it.
        """
        if self._missing is None:
            self._missing = tuple(
                (resource, type_url, name)
                for source in sorted(self._by_type)
                for resource in self.ordered(source)
                for type_url, name in sorted(resource.references)
                if name not in self.resources(type_url)
            )
        return self._missing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and all(
            self.version(type_url) == other.version(type_url)
            for type_url in {*self._by_type, *other._by_type}
        )

    def __hash__(self) -> int:
        return hash(tuple(self.version(type_url) for type_url in self.types()))


def version_of(resources: Iterable[Resource]) -> Version:
    """Return the version of resources taken together, 16 hexadecimal digits; order counts."""
    digest = hashlib.sha256()
    for resource in resources:
        digest.update(f"{resource.name}\0{resource.version}\0".encode())
    return Version(digest.hexdigest()[:16])


def _changed(old: Snapshot | None, new: Snapshot) -> Mapping[TypeUrl, frozenset[ResourceName]]:
    changed = {}
    for type_url in {*new.types(), *(old.types() if old is not None else ())}:
        before = old.resources(type_url) if old is not None else _NOTHING
        after = new.resources(type_url)
        if before is after:
            continue
        names = {
            name
            for name, resource in after.items()
            if (old_resource := before.get(name)) is not resource and old_resource != resource
        }
        names.update(name for name in before if name not in after)
        if names:
            changed[type_url] = frozenset(names)
    return changed
