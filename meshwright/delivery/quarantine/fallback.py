"""Snapshot for a proxy with rejections: the snapshot of the group without the rejected parts.

First the units of policy at fault are excluded (see `lessened`). A resource that is rejected even then is
withheld, and replaced by the last good version, reduced to callers still admitted by policy. Without a good
version an empty resource of the same name replaces it, for example a route configuration without routes, so
resources with a reference to this name can stay. A secret has no replacement and stays, because the version
is not sent again on the same stream, and removing all resources with a reference to the secret would not
help.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from catalog.policy.units import UnitId
from meshwright.delivery.quarantine.reduced_snapshot import admitted_by_both, lessened
from xds.cache import NodeKey
from xds.protocol.resources.resource import SECRET, Reference, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot

Empty = Callable[[Reference], Resource | None]
"""Factory of an empty resource of a type and name, without references; `None` if there is none.

For example, for a route configuration: one with the same name and without virtual hosts.
"""


Good = Callable[[Reference], Resource | None]
"""Function to find a good version of a resource; `None` if unknown."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Rejected versions of a proxy by type and name, the good versions to serve instead, and excluded units.

    `good` can have more entries than `rejected`, because it includes the resources to which good versions
    refer.
    """

    rejected: Mapping[Reference, frozenset[Version]] = field(default_factory=lambda: MappingProxyType({}))
    good: Mapping[Reference, Resource] = field(default_factory=lambda: MappingProxyType({}))
    units: frozenset[UnitId] = frozenset()


@dataclass(frozen=True, slots=True)
class Fallback:
    """Snapshot for proxies with rejections, and the differences from the snapshot of the group.

    `instead` has the replacement of each rejected resource, or `None` for a removed one. `looked_up` has all
    looked-up good versions (`None` if not found); with equal good versions the result is equal.
    """

    snapshot: Snapshot
    instead: Mapping[Reference, Resource | None]
    looked_up: Mapping[Reference, Resource | None]


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Excluded units and versions by proxy, applied to snapshots computed from scratch (see `self_check`)."""

    by_node: Mapping[NodeKey, Exclusion]
    empty: Empty

    def instead_of(self, node: NodeKey, current: Snapshot) -> Snapshot:
        """Return the snapshot to serve to a proxy whose computed snapshot is `current`."""
        excluded = self.by_node.get(node)
        return current if excluded is None else fallback(current, excluded, self.empty).snapshot


def fallback(current: Snapshot, excluded: Exclusion, empty: Empty, good: Good | None = None) -> Fallback:
    """Return a consistent snapshot without the rejected versions, made from the snapshot `current`.

    A good version may refer to a former resource of the group; the last good version of this resource is then
    served as well. A resource with an unsatisfied reference goes one step down itself. Each resource has at
    most three steps down: from the group's version to a good one, to an empty one, and to removal, so the
    search ends. `current` must be consistent, and is itself the result if nothing is rejected. `good` finds
    good versions; by default `excluded.good` is used.
    """
    asked = _VersionSearch(excluded.good.get if good is None else good)
    less = lessened(current, excluded.units, asked)
    search = _Search(less, excluded.rejected, asked, empty)
    for key in sorted(excluded.rejected):
        search.refuse(key)
    snapshot = search.snapshot()
    while missing := snapshot.missing():
        search.mend(missing)
        snapshot = search.snapshot()
    # Repeat, because a removed resource may have been the only one with a reference to another added one.
    while search.drop_idle(snapshot):
        snapshot = search.snapshot()
    instead = {
        key: resource
        for key, resource in search.instead.items()
        if resource is not None or _find(less, key) is not None
    }
    return Fallback(snapshot, MappingProxyType(instead), MappingProxyType(asked.answers))


class _VersionSearch:
    """Look-up of good versions, each once, with a record of the answers."""

    def __init__(self, good: Good) -> None:
        self._good = good
        self.answers: dict[Reference, Resource | None] = {}

    def __call__(self, key: Reference) -> Resource | None:
        if key not in self.answers:
            self.answers[key] = self._good(key)
        return self.answers[key]


class _Search:
    """Search for a consistent set.

    Resources step down from the group's version to a good or empty one, or none.
    """

    def __init__(
        self,
        current: Snapshot,
        rejected: Mapping[Reference, frozenset[Version]],
        good: Good,
        empty: Empty,
    ) -> None:
        self._current = current
        self._rejected = rejected
        self._good = good
        self._empty = empty
        self._emptied: set[Reference] = set()
        self.instead: dict[Reference, Resource | None] = {}

    def snapshot(self) -> Snapshot:
        """Return the group's snapshot with all replacements so far."""
        put = [resource for resource in self.instead.values() if resource is not None]
        gone = [key for key, resource in self.instead.items() if resource is None]
        return self._current.changed(put, gone) if put or gone else self._current

    def refuse(self, key: Reference) -> None:
        """Replace a resource if its version in the group is a rejected one."""
        own = _find(self._current, key)
        if own is None or own.version not in self._rejected[key]:
            return
        self._step_down(key)
        if self.instead[key] is None and key[0] == SECRET:
            del self.instead[key]

    def mend(self, missing: Iterable[tuple[Resource, TypeUrl, ResourceName]]) -> None:
        """Add missing resources in a good version; a resource with a missing reference goes a step down."""
        wanted = [((source.type_url, source.name), (kind, name)) for source, kind, name in missing]
        # Add all missing resources before any step down, so a resource with several missing references steps
        # down once, and only if one of them cannot be added.
        for _, key in wanted:
            if key not in self.instead:
                self._step_down(key)
        for source in dict.fromkeys(source for source, key in wanted if self.instead[key] is None):
            self._step_down(source)

    def drop_idle(self, snapshot: Snapshot) -> bool:
        """Remove added resources to which nothing refers in the end; return whether any was removed."""
        needed = {
            reference
            for type_url in snapshot.types()
            for resource in snapshot.ordered(type_url)
            for reference in resource.references
        }
        idle = [
            key
            for key, resource in self.instead.items()
            if resource is not None and key not in needed and _find(self._current, key) is None
        ]
        for key in idle:
            self.instead[key] = None
        return bool(idle)

    def _step_down(self, key: Reference) -> None:
        # A good version and an empty one are each tried once per resource, so the search ends.
        resource = None
        if key not in self.instead:
            resource = self._usable(key, self._narrowed(key))
        if resource is None and key not in self._emptied:
            self._emptied.add(key)
            resource = self._usable(key, self._empty(key))
        self.instead[key] = resource

    def _narrowed(self, key: Reference) -> Resource | None:
        good = self._good(key)
        return None if good is None else admitted_by_both(good, _find(self._current, key))

    def _usable(self, key: Reference, resource: Resource | None) -> Resource | None:
        if resource is None or resource.version in self._rejected.get(key, ()):
            return None
        return resource


def _find(snapshot: Snapshot, key: Reference) -> Resource | None:
    type_url, name = key
    return snapshot.resources(type_url).get(name)
