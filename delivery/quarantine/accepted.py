"""What proxies have acknowledged: the resources that are known to be good."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import is_not, ne
from types import MappingProxyType
from typing import Final

from xds.cache import GroupKey, NodeKey
from xds.protocol.resource import Reference, Resource, ResourceName, TypeUrl
from xds.protocol.resources import NO_RESOURCES, Resources
from xds.protocol.snapshot import Snapshot
from xds.protocol.wire import Response

SPARE: Final = 16
"""How many resources of a type that are no longer served may be remembered besides as many as are served."""

_Newest = tuple[Resource, ...]
"""Versions of one resource, the newest first."""

FEW: Final = 16
"""Of so many resources it is looked after each answer whether all that is served is acknowledged."""

OFTEN: Final = 32
"""Of more it is looked after so many that were noted by name: at rest few stand beside the table."""

SAME: Final = 4096
"""So many versions that were noted last are known again when the next has acknowledged the same: what a mesh
of a thousand services has of a type, for proxies and for groups.
"""

_NONE: Final[Mapping[ResourceName, _Newest]] = MappingProxyType({})


class Same:
    """The versions that were noted last: who acknowledges what others have has their very tuple."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int], _Newest] = OrderedDict()

    def __call__(self, resource: Resource, before: Resource | None = None) -> _Newest:
        """Return a version, and the one before if that is kept: as they were noted before, or as they are."""
        if resource.secret:  # of one group alone, and not to be held longer than by it
            return _versions(resource, before)
        key = (id(resource), id(before))
        if (found := self._known.get(key)) is None:
            # The entry holds both: their identities cannot become others'.
            found = self._known[key] = _versions(resource, before)
            if len(self._known) > SAME:
                self._known.popitem(last=False)
        return found


def _versions(resource: Resource, before: Resource | None) -> _Newest:
    return (resource,) if before is None else (resource, before)


class Noted:
    """What somebody has acknowledged of one type's resources, by name.

    Who has acknowledged all that is served has that very table, which its group has as well, and others: what
    is noted by name is what differs from it, which is hardly ever anything.
    """

    __slots__ = ("_named", "_same", "_whole")

    def __init__(self, same: Same) -> None:
        """Note nothing yet; versions are those that `same` knows of others."""
        self._same = same
        self._whole: Resources = NO_RESOURCES
        self._named = _NONE

    def get(self, name: ResourceName) -> _Newest:
        """Return the versions of a resource, the newest first."""
        found = self._named.get(name)
        if found is None:
            whole = self._whole.get(name)
            return () if whole is None else (whole,)
        return found

    def put(self, name: ResourceName, newest: _Newest) -> None:
        """Note the versions of a resource; none where nothing is to be known of it."""
        if isinstance(self._named, dict):
            self._named[name] = newest
        else:
            self._named = {name: newest}

    def take(self, resources: tuple[Resource, ...], served: Resources, count: int) -> None:
        """Take acknowledged resources; of each up to `count` versions are kept, one or two."""
        if len(resources) == len(served) and resources == served.ordered:
            self._take_all(served, count)
        else:
            noted = len(self._named)
            for each in resources:
                self._take(each, count)
            looks = len(served) <= FEW or len(self._named) // OFTEN > noted // OFTEN
            if looks and self._whole is not served and self._is_all(served):
                self._take_all(served, count)
        if len(self._named) + len(self._whole) > 2 * len(served) + SPARE:
            kept = {name: found for name in served if (found := self.get(name))}
            self._whole, self._named = NO_RESOURCES, kept

    def _take(self, resource: Resource, count: int) -> None:
        known = self.get(resource.name)
        if known and known[0] is resource:
            return  # as most of its group has it by now
        if not known or known[0].version != resource.version:
            self.put(resource.name, self._newest(resource, known, count))

    def _is_all(self, served: Resources) -> bool:
        """Say whether of each resource that is served that version is the newest that was acknowledged."""
        others = {*self._named, *served.differing(self._whole, is_not)}
        return all(
            (known := self.get(name)) and known[0] is each
            for name in others
            if (each := served.get(name)) is not None
        )

    def _take_all(self, served: Resources, count: int) -> None:
        if not self._named and (not self._whole or self._whole is served):
            self._whole = served
            return
        before = {name: self.get(name) for name in (*self._named, *served.differing(self._whole, ne))}
        self._whole, self._named = served, _NONE
        for name, known in before.items():
            now = served.get(name)
            found = known if now is None else self._newest(now, known, count)
            if found and found != self.get(name):
                self.put(name, found)

    def _newest(self, resource: Resource, known: _Newest, count: int) -> _Newest:
        if count == 1:
            return self._same(resource)
        return self._same(resource, next((each for each in known if each.version != resource.version), None))


Acknowledged = dict[TypeUrl, Noted]
"""What somebody has acknowledged, by type."""


class Accepted:
    """What each proxy has acknowledged last of each resource, and the newest two versions in its group.

    `of` returns where that of a proxy is kept: it outlives streams, so that one that comes back is known.
    What a proxy is no longer served is remembered for a while: a route that must go back needs its clusters.
    Where nobody of a group has acknowledged a resource, its version before the newest counts: proxies that
    reconnect with what they hold are not sent it, and have nothing to acknowledge.
    """

    def __init__(self, of: Callable[[NodeKey], Acknowledged]) -> None:
        self._of = of
        self._same = Same()
        self._by_group: dict[GroupKey, Acknowledged] = {}

    def note(self, node: NodeKey, group: GroupKey | None, response: Response, served: Snapshot) -> None:
        """Take an acknowledged response of a proxy, which is served that snapshot now.

        Without a group it is not what others of its group are served, and says nothing of them.
        """
        in_force = served.resources(response.type_url)
        noted = [(self._of(node), 1)]
        if group is not None:
            noted.append((self._by_group.setdefault(group, {}), 2))
        for held, count in noted:
            self._of_type(held, response.type_url).take(response.resources, in_force, count)

    def replaced(self, group: GroupKey, before: Snapshot, after: Snapshot | None) -> None:
        """Take it that a group is served another snapshot: of what it had, the versions before the newest."""
        if after is None:
            return
        known = self._by_group.setdefault(group, {})
        for type_url, names in after.changed_since(before).items():
            old = before.resources(type_url)
            noted = self._of_type(known, type_url)
            for name in names & old.keys():
                if not noted.get(name):
                    noted.put(name, self._same(old[name]))

    def rejected(self, node: NodeKey, resource: Resource) -> None:
        """Take back that a proxy has accepted a version: it does not any more."""
        if self.accepts(node, resource):
            self._of(node)[resource.type_url].put(resource.name, ())

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

    def _of_type(self, held: Acknowledged, type_url: TypeUrl) -> Noted:
        found = held.get(type_url)
        if found is None:
            found = held[type_url] = Noted(self._same)
        return found


def _found(held: Acknowledged, key: Reference) -> _Newest:
    noted = held.get(key[0])
    return () if noted is None else noted.get(key[1])
