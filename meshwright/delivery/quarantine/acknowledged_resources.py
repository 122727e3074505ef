"""Resources that proxies have acknowledged, and which are therefore known to be good."""

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
"""How many resources of a type that are no longer served may be remembered besides as many as are served."""

_Newest = tuple[Resource, ...]
"""Versions of one resource, the newest first."""

FEW: Final = 16
"""Of so many resources it is looked after each answer whether all that is served is acknowledged."""

OFTEN: Final = 32
"""Of more it is looked after so many that were noted by name: at rest few stand beside the table."""

OWN: Final = 1
OF_GROUP: Final = 2
"""How many versions of a resource are kept, of a proxy and of a group."""

_NONE: Final[Mapping[ResourceName, _Newest]] = MappingProxyType({})


class AcknowledgedVersions:
    """What somebody has acknowledged of one type's resources, by name: up to `count` versions of each.

    Unchangeable. Who has acknowledged all that is served has that very table, as others have: what is noted
    by name is what differs from it, which is hardly ever anything. Who stands where others did, and then
    acknowledges what they have, comes to the very value that they have come to.
    """

    __slots__ = ("__weakref__", "_next", "_replaced", "count", "named", "whole")

    def __init__(
        self, count: int, whole: Resources = NO_RESOURCES, named: Mapping[ResourceName, _Newest] = _NONE
    ) -> None:
        self.count = count
        self.whole = whole
        self.named = named
        # What others came to is alive only while somebody has it: who is stuck keeps no chain of them.
        self._next: tuple[tuple[Resource, ...], Resources, weakref.ref[AcknowledgedVersions]] | None = None
        self._replaced: tuple[Resources, Names, weakref.ref[AcknowledgedVersions]] | None = None

    def get(self, name: ResourceName) -> _Newest:
        """Return the versions of a resource, the newest first."""
        found = self.named.get(name)
        if found is None:
            whole = self.whole.get(name)
            return () if whole is None else (whole,)
        return found

    def put(self, named: Mapping[ResourceName, _Newest]) -> "AcknowledgedVersions":
        """Return this with other versions of some resources; none where nothing is to be known of them."""
        return AcknowledgedVersions(self.count, self.whole, {**self.named, **named}) if named else self

    def known(self, resources: tuple[Resource, ...], served: Resources) -> "AcknowledgedVersions | None":
        """Return what others came to from here, if any acknowledged these very resources."""
        step = self._next
        return step[2]() if step is not None and step[0] is resources and step[1] is served else None

    def remember(
        self, resources: tuple[Resource, ...], served: Resources, after: "AcknowledgedVersions"
    ) -> None:
        """Take it that whoever acknowledges these very resources comes to `after`.

        But for what is secret, which nobody holds for others, and from nothing, where all begin.
        """
        if (self.whole or self.named) and resources and not resources[0].secret:
            self._next = (resources, served, weakref.ref(after))

    def after(self, response: Response, served: Resources) -> "AcknowledgedVersions":
        """Return what is noted when a response is acknowledged; `served` is what there is of its type."""
        if response.table is not None:  # though there be another by now
            return self.of_all(response.table).trimmed(served)
        fresh = (each for each in response.resources if not self._is_newest(each))
        found = self.put({each.name: self._newest(each, self.get(each.name)) for each in fresh})
        looks = len(served) <= FEW or len(found.named) // OFTEN > len(self.named) // OFTEN
        if looks and self.whole is not served:
            others = dict.fromkeys((*found.named, *served.differing(found.whole, is_another_version)))
            if found.has_all(served, others):
                found = found.of_all(served, others)
        return found.trimmed(served)

    def replaced(self, old: Resources, names: Names) -> "AcknowledgedVersions":
        """Return what is noted when resources of these names are replaced: the old ones where nothing was."""
        step = self._replaced
        if step is not None and step[0] is old and step[1] is names and (known := step[2]()) is not None:
            return known
        there = [old[name] for name in names if name in old]
        found = self.put({each.name: (each,) for each in there if not self.get(each.name)})
        if (self.whole or self.named) and there and not there[0].secret:
            self._replaced = (old, names, weakref.ref(found))
        return found

    def _is_newest(self, resource: Resource) -> bool:
        known = self.get(resource.name)
        return bool(known) and known[0] == resource

    def _newest(self, resource: Resource, known: _Newest) -> _Newest:
        before = [each for each in known if each.version != resource.version] if self.count > 1 else ()
        return (resource, *before)[: self.count]

    def has_all(self, served: Resources, others: Iterable[ResourceName]) -> bool:
        """Say whether of each resource that is served that version is the newest that was acknowledged.

        `others` are the names of those that may be other than in the table that it has as a whole.
        """
        for name in others:
            each = served.get(name)
            if each is not None and (not (known := self.get(name)) or known[0].version != each.version):
                return False
        return True

    def of_all(
        self, table: Resources, others: Iterable[ResourceName] | None = None
    ) -> "AcknowledgedVersions":
        """Return what is noted when all of a table is acknowledged; `others` as above, if known."""
        if not self.named and self.whole is table:
            return self
        found = AcknowledgedVersions(self.count, table)
        if not self.named and not self.whole:
            return found
        named = {}
        if others is None:
            others = (*self.named, *table.differing(self.whole, is_another_version))
        for name in others:
            known, now = self.get(name), table.get(name)
            newest = known if now is None else self._newest(now, known)
            if newest and newest != found.get(name):
                named[name] = newest
        return found.put(named)

    def trimmed(self, served: Resources) -> "AcknowledgedVersions":
        """Return this without what is no longer served, where that is too much."""
        if len(self.named) + len(self.whole) <= 2 * len(served) + SPARE:
            return self
        kept = {name: known for name in served if (known := self.get(name))}
        return AcknowledgedVersions(self.count, NO_RESOURCES, kept)


_NOTHING: Final = {count: AcknowledgedVersions(count) for count in (OWN, OF_GROUP)}

Acknowledged = dict[TypeUrl, AcknowledgedVersions]
"""What somebody has acknowledged, by type."""


class AcknowledgedResources:
    """What each proxy has acknowledged last of each resource, and the newest two versions in its group.

    `of` returns where that of a proxy is kept: it outlives streams, so that one that comes back is known.
    What a proxy is no longer served is remembered for a while: a route that must go back needs its clusters.
    Where nobody of a group has acknowledged a resource, its version before the newest counts: proxies that
    reconnect with what they hold are not sent it, and have nothing to acknowledge.
    """

    def __init__(self, of: Callable[[NodeKey], Acknowledged]) -> None:
        self._of = of
        self._by_group: dict[GroupKey, Acknowledged] = {}
        self._wholes: weakref.WeakValueDictionary[tuple[int, int], AcknowledgedVersions] = (
            weakref.WeakValueDictionary()
        )

    def note(self, node: NodeKey, group: GroupKey | None, response: Response, served: Snapshot) -> None:
        """Take an acknowledged response of a proxy, which is served that snapshot now.

        Without a group it is not what others of its group are served, and says nothing of them.
        """
        in_force = served.resources(response.type_url)
        self._take(self._of(node), OWN, response, in_force)
        if group is not None:
            if (held := self._by_group.get(group)) is None:
                held = self._by_group[group] = {}
            self._take(held, OF_GROUP, response, in_force)

    def replaced(self, group: GroupKey, before: Snapshot, after: Snapshot | None) -> None:
        """Take it that a group is served another snapshot: of what it had, the versions before the newest."""
        if after is None:
            return
        held = self._by_group.setdefault(group, {})
        for type_url, names in after.changed_since(before).items():
            noted = held.get(type_url, _NOTHING[OF_GROUP])
            held[type_url] = noted.replaced(before.resources(type_url), names)

    def rejected(self, node: NodeKey, resource: Resource) -> None:
        """Take back that a proxy has accepted a version: it does not any more."""
        if self.accepts(node, resource):
            held = self._of(node)
            held[resource.type_url] = held[resource.type_url].put({resource.name: ()})

    def accepts(self, node: NodeKey, resource: Resource) -> bool:
        """Say whether this very version is what the proxy has acknowledged last."""
        held = _found(self._of(node), (resource.type_url, resource.name))
        return any(each.version == resource.version for each in held)

    def by(self, node: NodeKey, key: Reference) -> Resource | None:
        """Return what the proxy itself has acknowledged last."""
        return next(iter(_found(self._of(node), key)), None)

    def good(self, node: NodeKey, group: GroupKey, key: Reference) -> Iterator[Resource]:
        """Yield the versions to be taken for good, the best first: the proxy's own, then its group's."""
        for held in (self._of(node), self._by_group.get(group, {})):
            yield from _found(held, key)

    def forget(self, nodes: Iterable[NodeKey], groups: Iterable[GroupKey]) -> None:
        """Forget proxies and groups that are gone."""
        for node in nodes:
            self._of(node).clear()
        for group in groups:
            self._by_group.pop(group, None)

    def _take(self, held: Acknowledged, count: int, response: Response, served: Resources) -> None:
        type_url, resources = response.type_url, response.resources
        noted = held.get(type_url, _NOTHING[count])
        if (after := noted.known(resources, served)) is None:
            after = self._one(noted.after(response, served))
            if after is not noted or len(resources) >= MANY:  # of few it is seen at once that nothing is new
                noted.remember(resources, served, after)
        if after is not noted:
            held[type_url] = after

    def _one(self, noted: AcknowledgedVersions) -> AcknowledgedVersions:
        """Return the value of others who have all of a large table, if this is one of them."""
        if noted.named or len(noted.whole) < MANY:
            return noted
        # The value holds the table: its identity cannot become another's.
        return self._wholes.setdefault((noted.count, id(noted.whole)), noted)


def _found(held: Acknowledged, key: Reference) -> _Newest:
    noted = held.get(key[0])
    return () if noted is None else noted.get(key[1])
