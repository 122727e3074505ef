"""Snapshot for a proxy that has rejected resources: the snapshot of its group without the rejected parts.

First the units of policy at fault are excluded (see `lessened`). A resource that is rejected even then is
withheld, and replaced by its last good version, reduced to callers that policy still admits. Without a good
version an empty resource of the same name replaces it, for example a route configuration without routes, so
that resources with a reference to it can stay. A secret has no replacement and stays: it is not sent again on
the same stream, and removing all resources that need the secret would not help.
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
"""Makes an empty resource of a type and name: it refers to nothing. None where there is no such thing."""


Good = Callable[[Reference], Resource | None]
"""Returns the good version of a resource that may stand in its place, None where none is known."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """The versions that a proxy rejected, by type and name, and the resources that it is to have instead.

    `good` may hold more than is rejected: what those resources refer to. `units` of policy are left out.
    """

    rejected: Mapping[Reference, frozenset[Version]] = field(default_factory=lambda: MappingProxyType({}))
    good: Mapping[Reference, Resource] = field(default_factory=lambda: MappingProxyType({}))
    units: frozenset[UnitId] = frozenset()


@dataclass(frozen=True, slots=True)
class Fallback:
    """A snapshot for those who rejected something, and how it differs from their group's own.

    `instead` are the resources that stand for rejected ones, None for what is left out. `asked` are the good
    versions that were asked for, None where there was none: with the same of them it comes out the same.
    """

    snapshot: Snapshot
    instead: Mapping[Reference, Resource | None]
    asked: Mapping[Reference, Resource | None]


@dataclass(frozen=True, slots=True)
class Exclusions:
    """What is withheld from whom, as a function of what is computed for them."""

    by_node: Mapping[NodeKey, Exclusion]
    empty: Empty

    def instead_of(self, node: NodeKey, current: Snapshot) -> Snapshot:
        """Return what a proxy is served for which this snapshot was computed."""
        excluded = self.by_node.get(node)
        return current if excluded is None else fallback(current, excluded, self.empty).snapshot


def fallback(current: Snapshot, excluded: Exclusion, empty: Empty, good: Good | None = None) -> Fallback:
    """Return what to serve instead of a consistent snapshot: consistent as well, without what was rejected.

    A good version may refer to what the group no longer has: that comes back in its last good version. What
    refers to something that nothing stands for goes back itself. Ends after at most three steps for each
    resource: the group's own, the good one, the empty one, nothing. With nothing rejected it is the snapshot
    itself. `good` finds the good versions, `excluded` has them without it.
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
    # Again and again: what is dropped may have been all that needed another one.
    while search.drop_idle(snapshot):
        snapshot = search.snapshot()
    instead = {
        key: resource
        for key, resource in search.instead.items()
        if resource is not None or _find(less, key) is not None
    }
    return Fallback(snapshot, MappingProxyType(instead), MappingProxyType(asked.answers))


class _VersionSearch:
    """Finds good versions, each once, and knows what was asked for."""

    def __init__(self, good: Good) -> None:
        self._good = good
        self.answers: dict[Reference, Resource | None] = {}

    def __call__(self, key: Reference) -> Resource | None:
        if key not in self.answers:
            self.answers[key] = self._good(key)
        return self.answers[key]


class _Search:
    """Goes down, resource by resource: the group's own version, the good one, the empty one, none."""

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
        """Return the snapshot as far as it is."""
        put = [resource for resource in self.instead.values() if resource is not None]
        gone = [key for key, resource in self.instead.items() if resource is None]
        return self._current.changed(put, gone) if put or gone else self._current

    def refuse(self, key: Reference) -> None:
        """Put something else in the place of the group's own version, if that is the rejected one."""
        own = _find(self._current, key)
        if own is None or own.version not in self._rejected[key]:
            return
        self._step_down(key)
        if self.instead[key] is None and key[0] == SECRET:
            del self.instead[key]

    def mend(self, missing: Iterable[tuple[Resource, TypeUrl, ResourceName]]) -> None:
        """Bring back what is referred to and missing; what cannot be helped so goes a step down itself."""
        wanted = [((source.type_url, source.name), (kind, name)) for source, kind, name in missing]
        # All that is missing first: what refers to several of them goes down once, and only if one is lost.
        for _, key in wanted:
            if key not in self.instead:
                self._step_down(key)
        for source in dict.fromkeys(source for source, key in wanted if self.instead[key] is None):
            self._step_down(source)

    def drop_idle(self, snapshot: Snapshot) -> bool:
        """Drop what was brought back for something that is not there in the end; say whether anything was."""
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
        # The good one, the empty one, none: each is tried once and never again, and so the search ends.
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
