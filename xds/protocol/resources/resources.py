"""Table of the resources of one type, with derived values such as their common version."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final, Self

from xds.errors import XdsError
from xds.protocol.resources.layers import FLAT, NOTHING, Layers
from xds.protocol.resources.name_sets import NO_NAMES, Names
from xds.protocol.resources.resource import Resource, ResourceName, Version, identities, is_another_version
from xds.protocol.resources.versions import SUM, Versions, digest_of, version_of

MANY: Final = 64
"""Number of resources from which comparing each identity is considered expensive."""

_name: Final = attrgetter("name")


class SnapshotError(XdsError, ValueError):
    """Error for resources in conflict within one snapshot."""


def identity(resources: "Resources | tuple[Resource, ...]") -> Hashable:
    """Return a key for the identity of a table or of resources, valid as long as they are held."""
    return identities(resources) if isinstance(resources, tuple) else id(resources)


def digest(resources: Iterable[Resource | None]) -> int:
    """Return the digest of resources: a sum, so the order of resources does not matter."""
    return (
        sum(digest_of(resource.name, resource.version) for resource in resources if resource is not None)
        % SUM
    )


def _is_special(resource: Resource | None) -> bool:
    return resource is not None and (resource.on_demand or resource.ttl_seconds is not None)


def _special(resources: Iterable[Resource | None]) -> Names:
    return (
        Names(resource.name for resource in resources if resource is not None and _is_special(resource))
        or NO_NAMES
    )


class Resources(Layers[ResourceName, Resource]):
    """The resources of one type, in the order of their names. Immutable.

    `special` are the on-demand names, and names with a time to live; usually empty.
    """

    __slots__ = ("_digest", "_ordered", "_version", "_versions", "special", "steps")

    def __init__(
        self,
        base: Mapping[ResourceName, Resource] = NOTHING,
        over: Mapping[ResourceName, Resource | None] = NOTHING,
        size: int | None = None,
        special: Names | None = None,
        digest: int | None = None,
        versions: Versions | None = None,
    ) -> None:
        super().__init__(base, over, size)
        self.special = _special(base.values()) if special is None else special
        self._digest = digest
        self._versions = versions
        self._ordered: tuple[Resource, ...] | None = None
        self._version: Version | None = None
        self.steps: dict[tuple[type[object], int, int, bool], Any] | None = (
            None  # see xds.protocol.common_step
        )

    @property
    def digest(self) -> int:
        """Return the sum of `digest_of` over all resources."""
        if self._digest is None:
            match self.base, self.over:
                case Resources() as one, Resources() as other:
                    self._digest = (one.digest + other.digest) % SUM
                case _:
                    self._digest = digest(self.values())
        return self._digest

    @property
    def version(self) -> Version:
        """Return the common version of all resources, always as the same string object."""
        if self._version is None:
            self._version = version_of(self.digest)
        return self._version

    @property
    def versions(self) -> Versions:
        """Return the version of each resource, always as the same mapping object."""
        if self._versions is None:
            match self.base, self.over:
                case Resources() as one, Resources() as other:
                    self._versions = Versions(one.versions, other.versions, len(self), self.digest)
                case _:
                    named = {name: resource.version for name, resource in self.items()}
                    self._versions = Versions(named, digest=self.digest)
        return self._versions

    @property
    def ordered(self) -> tuple[Resource, ...]:
        """Return the resources in the order of their names.

        The tuple is cached, except for a table over several sets: one cached tuple per group would be one
        copy of the shared resources per group.
        """
        if self._ordered is not None:
            return self._ordered
        if isinstance(self.over, Resources):
            return self._merged()
        self._ordered = self._merged() if self.over else tuple(self.base.values())
        return self._ordered

    def _merged(self) -> tuple[Resource, ...]:
        """Return the resources in order. Changed names are few, so each is found by binary search."""
        base = self.base
        resources = list(base.ordered if isinstance(base, Resources) else base.values())
        for name, resource in self.over.items():
            at = bisect_left(resources, name, key=_name)
            there = at < len(resources) and resources[at].name == name
            resources[at : at + there] = () if resource is None else (resource,)
        return tuple(resources)

    def changed(self, changes: Mapping[ResourceName, Resource | None]) -> Self:
        """Return a table with changed resources (None removes one).

        Known digests and versions are updated.
        """
        special, known, versions = self.special, self._digest, self._versions
        if special or any(map(_is_special, changes.values())):
            special = special.difference(changes) | _special(changes.values())
        if known is not None:
            known = (known - digest(map(self.get, changes)) + digest(changes.values())) % SUM
        if versions is not None:
            others = {n: change for n, change in changes.items() if is_another_version(self.get(n), change)}
            if others:
                versions = versions.changed(
                    {n: resource.version if resource else None for n, resource in others.items()}
                )
        return type(self)(*self.laid_over(changes), special, known, versions)

    def beside(self, other: "Resources") -> "Resources":
        """Return a table with the resources of both, sharing both. They must not have a name in common."""
        return Resources(self, other, len(self) + len(other), self.special | other.special)


NO_RESOURCES: Final = Resources()


def together(tables: Iterable[Resources]) -> Resources:
    """Join tables of one type; raise SnapshotError for a name with different content in two of them.

    The largest table is shared, and small ones are merged, so a lookup costs the same for any number of
    tables.
    """
    resources, *others = sorted(tables, key=len, reverse=True)
    small: dict[ResourceName, Resource] = {}
    for table in others:
        doubled = {
            name: there for name in table if (there := resources.get(name, small.get(name))) is not None
        }
        for name, there in doubled.items():
            if is_another_version(table[name], there):
                raise SnapshotError(f"two resources of {there.type_url} are named {name!r}")
        new = table.changed(dict.fromkeys(doubled)) if doubled else table
        if len(new) > FLAT:
            resources = resources.beside(new)
        else:
            small.update(new)
    if not small:
        return resources
    if len(resources) + len(small) <= FLAT:
        return Resources(dict(sorted({**resources, **small}.items())))
    return resources.beside(Resources(dict(sorted(small.items()))))
