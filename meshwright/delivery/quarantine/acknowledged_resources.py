"""Resources acknowledged by proxies, and therefore known to be good.

After a rejection the quarantine replaces the rejected version with an acknowledged one.
`AcknowledgedVersions` is the value for one type, shared by all proxies of the same history;
`AcknowledgedResources` keeps these values by proxy and by group.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.name_sets import Names
from xds.protocol.resources.resource import Reference, Resource, ResourceName, TypeUrl, is_another_version
from xds.protocol.resources.resources import MANY, NO_RESOURCES, Resources
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.wire import Response

SPARE: Final = 16
"""Number of extra resources of a type that may be remembered.

The record is trimmed when it has more than twice the number of served resources plus this number.
"""

_Newest = tuple[Resource, ...]
"""Versions of one resource, the newest first."""

FEW: Final = 16
"""Up to this number of served resources, a check after each ACK finds out whether all are acknowledged."""

OFTEN: Final = 32
"""With more than FEW served resources, the check follows whenever this many more are noted by name.

Each check compares the whole table.
"""

OWN: Final = 1
OF_GROUP: Final = 2
"""Number of versions kept of each resource: one for a proxy (OWN), two for a group (OF_GROUP)."""

_NONE: Final[Mapping[ResourceName, _Newest]] = MappingProxyType({})


class AcknowledgedVersions:
    """Acknowledged versions of one type, by resource name: up to `count` versions of each. Immutable.

    A client that has acknowledged all served resources refers to the served table (`whole`), without a copy.
    `named` has only the differences from this table, usually none.

    Proxies with the same value get the same next value for the same response. `_next` and `_replaced` are
    caches of the latest such step.
    """

    __slots__ = ("__weakref__", "_next", "_replaced", "count", "named", "whole")

    def __init__(
        self, count: int, whole: Resources = NO_RESOURCES, named: Mapping[ResourceName, _Newest] = _NONE
    ) -> None:
        self.count = count
        self.whole = whole
        self.named = named
        # Weak references: strong ones would chain all values since the oldest one that a proxy still has.
        self._next: tuple[tuple[Resource, ...], Resources, weakref.ref[AcknowledgedVersions]] | None = None
        self._replaced: tuple[Resources, Names, weakref.ref[AcknowledgedVersions]] | None = None

    def get(self, name: ResourceName) -> _Newest:
        """Return the versions of a resource, the newest first."""
        resources = self.named.get(name)
        if resources is None:
            whole = self.whole.get(name)
            return () if whole is None else (whole,)
        return resources

    def put(self, named: Mapping[ResourceName, _Newest]) -> "AcknowledgedVersions":
        """Return this value with other versions of some resources.

        An empty tuple marks a resource without a known version.
        """
        return AcknowledgedVersions(self.count, self.whole, {**self.named, **named}) if named else self

    def known(self, resources: tuple[Resource, ...], served: Resources) -> "AcknowledgedVersions | None":
        """Return the cached next value, if another proxy acknowledged the same resources from this value."""
        step = self._next
        return step[2]() if step is not None and step[0] is resources and step[1] is served else None

    def remember(
        self, resources: tuple[Resource, ...], served: Resources, after: "AcknowledgedVersions"
    ) -> None:
        """Cache `after` as the next value for proxies that acknowledge the same resources.

        Secrets are not cached, because each proxy has its own. The empty value caches nothing, because every
        new proxy begins there, with any response.
        """
        if (self.whole or self.named) and resources and not resources[0].secret:
            self._next = (resources, served, weakref.ref(after))

    def after(self, response: Response, served: Resources) -> "AcknowledgedVersions":
        """Return the value after an ACK of a response; `served` are the current resources of its type."""
        if response.table is not None:  # though there be another by now
            return self.of_all(response.table).trimmed(served)
        fresh = (resource for resource in response.resources if not self._is_newest(resource))
        versions = self.put(
            {resource.name: self._newest(resource, self.get(resource.name)) for resource in fresh}
        )
        looks = len(served) <= FEW or len(versions.named) // OFTEN > len(self.named) // OFTEN
        if looks and self.whole is not served:
            others = dict.fromkeys(
                (
                    *versions.named,
                    *served.differing(versions.whole, is_another_version),
                )
            )
            if versions.has_all(served, others):
                versions = versions.of_all(served, others)
        return versions.trimmed(served)

    def replaced(self, old: Resources, names: Names) -> "AcknowledgedVersions":
        """Return the value after these names get new versions.

        If no version of a resource is acknowledged, its old version counts as good.
        """
        step = self._replaced
        if step is not None and step[0] is old and step[1] is names and (known := step[2]()) is not None:
            return known
        there = [old[name] for name in names if name in old]
        versions = self.put({resource.name: (resource,) for resource in there if not self.get(resource.name)})
        if (self.whole or self.named) and there and not there[0].secret:
            self._replaced = (old, names, weakref.ref(versions))
        return versions

    def _is_newest(self, resource: Resource) -> bool:
        known = self.get(resource.name)
        return bool(known) and known[0] == resource

    def _newest(self, resource: Resource, known: _Newest) -> _Newest:
        before = [item for item in known if item.version != resource.version] if self.count > 1 else ()
        return (resource, *before)[: self.count]

    def has_all(self, served: Resources, others: Iterable[ResourceName]) -> bool:
        """Return whether the newest acknowledged version of every served resource is the served one.

        `others` are the names whose version may differ from the table `whole`; only these are compared.
        """
        for name in others:
            resource = served.get(name)
            if resource is not None and (
                not (known := self.get(name)) or known[0].version != resource.version
            ):
                return False
        return True

    def of_all(
        self, table: Resources, others: Iterable[ResourceName] | None = None
    ) -> "AcknowledgedVersions":
        """Return the value after a whole table is acknowledged; `others` as for `has_all`, if known."""
        if not self.named and self.whole is table:
            return self
        versions = AcknowledgedVersions(self.count, table)
        if not self.named and not self.whole:
            return versions
        named = {}
        if others is None:
            others = (*self.named, *table.differing(self.whole, is_another_version))
        for name in others:
            known, now = self.get(name), table.get(name)
            newest = known if now is None else self._newest(now, known)
            if newest and newest != versions.get(name):
                named[name] = newest
        return versions.put(named)

    def trimmed(self, served: Resources) -> "AcknowledgedVersions":
        """Return this value without resources that are not served now, if there are too many of them."""
        if len(self.named) + len(self.whole) <= 2 * len(served) + SPARE:
            return self
        kept = {name: known for name in served if (known := self.get(name))}
        return AcknowledgedVersions(self.count, NO_RESOURCES, kept)


_NOTHING: Final = {count: AcknowledgedVersions(count) for count in (OWN, OF_GROUP)}

Acknowledged = dict[TypeUrl, AcknowledgedVersions]
"""Acknowledged versions of one proxy or group, by type URL."""


class AcknowledgedResources:
    """The last acknowledged version of each resource by proxy, and the newest two versions by group.

    `read_acknowledged` returns the record of a proxy. This record outlives streams, so a reconnecting proxy
    is known. Former resources of a proxy are remembered for a while, because a route in an older version
    needs the old clusters.

    If no proxy of a group has acknowledged a resource, the version before the newest one counts as good. The
    reason is that a proxy that reconnects with the current versions gets no response to acknowledge.
    """

    def __init__(self, read_acknowledged: Callable[[NodeKey], Acknowledged]) -> None:
        self._of = read_acknowledged
        self._by_group: dict[GroupKey, Acknowledged] = {}
        self._wholes: weakref.WeakValueDictionary[tuple[int, int], AcknowledgedVersions] = (
            weakref.WeakValueDictionary()
        )

    def note(self, node: NodeKey, group: GroupKey | None, response: Response, served: Snapshot) -> None:
        """Record an ACK of a proxy whose current snapshot is `served`.

        `group` is `None` if the proxy is served a reduced snapshot; such an ACK does not concern the group.
        """
        in_force = served.resources(response.type_url)
        self._take(self._of(node), OWN, response, in_force)
        if group is not None:
            if (held := self._by_group.get(group)) is None:
                held = self._by_group[group] = {}
            self._take(held, OF_GROUP, response, in_force)

    def replaced(self, group: GroupKey, before: Snapshot, after: Snapshot | None) -> None:
        """Record a new snapshot of a group: replaced versions count as good if none is acknowledged."""
        if after is None:
            return
        held = self._by_group.setdefault(group, {})
        for type_url, names in after.changed_since(before).items():
            noted = held.get(type_url, _NOTHING[OF_GROUP])
            held[type_url] = noted.replaced(before.resources(type_url), names)

    def rejected(self, node: NodeKey, resource: Resource) -> None:
        """Remove a version rejected by the proxy now from the versions acknowledged by the proxy."""
        if self.accepts(node, resource):
            held = self._of(node)
            held[resource.type_url] = held[resource.type_url].put({resource.name: ()})

    def accepts(self, node: NodeKey, resource: Resource) -> bool:
        """Return whether the proxy's last acknowledged version of this resource is this version."""
        held = _newest_for(self._of(node), (resource.type_url, resource.name))
        return any(item.version == resource.version for item in held)

    def by(self, node: NodeKey, key: Reference) -> Resource | None:
        """Return the version of a resource that the proxy itself has acknowledged last, or `None`."""
        return next(iter(_newest_for(self._of(node), key)), None)

    def good(self, node: NodeKey, group: GroupKey, key: Reference) -> Iterator[Resource]:
        """Yield the good versions of a resource, best first: the proxy's own, then the group's."""
        for held in (self._of(node), self._by_group.get(group, {})):
            yield from _newest_for(held, key)

    def forget(self, nodes: Iterable[NodeKey], groups: Iterable[GroupKey]) -> None:
        """Forget the acknowledged versions of removed proxies and groups."""
        for node in nodes:
            self._of(node).clear()
        for group in groups:
            self._by_group.pop(group, None)

    def _take(self, acknowledged: Acknowledged, count: int, response: Response, served: Resources) -> None:
        type_url, resources = response.type_url, response.resources
        noted = acknowledged.get(type_url, _NOTHING[count])
        if (after := noted.known(resources, served)) is None:
            after = self._one(noted.after(response, served))
            if after is not noted or len(resources) >= MANY:  # of few it is seen at once that nothing is new
                noted.remember(resources, served, after)
        if after is not noted:
            acknowledged[type_url] = after

    def _one(self, noted: AcknowledgedVersions) -> AcknowledgedVersions:
        """Return the shared value of all proxies that have acknowledged the whole of the same large table."""
        if noted.named or len(noted.whole) < MANY:
            return noted
        # The value keeps the table alive, so no other table can get the same `id`.
        return self._wholes.setdefault((noted.count, id(noted.whole)), noted)


def _newest_for(acknowledged: Acknowledged, key: Reference) -> _Newest:
    noted = acknowledged.get(key[0])
    return () if noted is None else noted.get(key[1])
