"""What proxies have acknowledged: the resources that are known to be good."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from xds.cache import GroupKey, NodeKey
from xds.protocol.resource import Reference, Resource, ResourceName, TypeUrl
from xds.protocol.snapshot import Snapshot
from xds.protocol.wire import Response

SPARE: Final = 16
"""How many resources of a type that are no longer served may be remembered besides as many as are served."""

_Newest = tuple[Resource, ...]
"""Versions of one resource, the newest first."""

Acknowledged = dict[TypeUrl, dict[ResourceName, _Newest]]
"""What somebody has acknowledged of each resource, by type and name."""


class Accepted:
    """What each proxy has acknowledged last of each resource, and the newest two versions in its group.

    `of` returns where that of a proxy is kept: it outlives streams, so that one that comes back is known.
    What a proxy is no longer served is remembered for a while: a route that must go back needs its clusters.
    Where nobody of a group has acknowledged a resource, its version before the newest counts: proxies that
    reconnect with what they hold are not sent it, and have nothing to acknowledge.
    """

    def __init__(self, of: Callable[[NodeKey], Acknowledged]) -> None:
        self._of = of
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
            named = held.setdefault(response.type_url, {})
            for resource in response.resources:
                known = named.get(resource.name, ())
                if known and known[0] is resource:
                    continue  # as most of its group has it by now
                if not known or known[0].version != resource.version:
                    others = (each for each in known if each.version != resource.version)
                    named[resource.name] = (resource, *others)[:count]
            if len(named) > 2 * len(in_force) + SPARE:
                held[response.type_url] = {name: each for name, each in named.items() if name in in_force}

    def replaced(self, group: GroupKey, before: Snapshot, after: Snapshot | None) -> None:
        """Take it that a group is served another snapshot: of what it had, the versions before the newest."""
        if after is None:
            return
        known = self._by_group.setdefault(group, {})
        for type_url, names in after.changed_since(before).items():
            old = before.resources(type_url)
            named = known.setdefault(type_url, {})
            for name in names & old.keys():
                named.setdefault(name, (old[name],))

    def rejected(self, node: NodeKey, resource: Resource) -> None:
        """Take back that a proxy has accepted a version: it does not any more."""
        if self.accepts(node, resource):
            del self._of(node)[resource.type_url][resource.name]

    def accepts(self, node: NodeKey, resource: Resource) -> bool:
        """Say whether this very version is what the proxy has acknowledged last."""
        held = self._of(node).get(resource.type_url, {}).get(resource.name, ())
        return any(each.version == resource.version for each in held)

    def by(self, node: NodeKey, key: Reference) -> Resource | None:
        """Return what the proxy itself has acknowledged last."""
        return next(iter(self._of(node).get(key[0], {}).get(key[1], ())), None)

    def good(self, node: NodeKey, group: GroupKey, key: Reference) -> Iterator[Resource]:
        """Yield the versions to be taken for good, the best first: the proxy's own, then its group's."""
        type_url, name = key
        for held in (self._of(node), self._by_group.get(group, {})):
            yield from held.get(type_url, {}).get(name, ())

    def forget(self, nodes: Iterable[NodeKey], groups: Iterable[GroupKey]) -> None:
        """Forget proxies and groups that are gone."""
        for node in nodes:
            self._of(node).clear()
        for group in groups:
            self._by_group.pop(group, None)
