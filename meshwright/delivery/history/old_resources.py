"""Resources in force no more, for a group or a proxy: kept a while, to compare two versions of one."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot

BYTES: Final = 8 * 1024 * 1024
"""Resources kept in all, with their bodies as they are kept; the oldest go first."""

BESIDE: Final = 768
"""What a resource takes beside its body, which is often less: objects, its name, what it refers to."""


class ReplacedResources:
    """The resources replaced last, by type, name and version. Secrets are never among them."""

    def __init__(self, limit: int = BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[tuple[TypeUrl, ResourceName, Version], Resource] = OrderedDict()

    def keep(self, resource: Resource) -> None:
        """Keep a resource that is not in force any more, at least for some group of proxies, or for one.

        What it was made from is not: that is policy, of any size, which nobody asks of it.
        """
        key = (resource.type_url, resource.name, resource.version)
        if resource.secret or key in self._kept:
            return
        if resource.recipe is not None or resource.renewal is not None:
            resource = replace(resource, recipe=None, renewal=None)
        self._kept[key] = resource
        self._size += BESIDE + len(resource.kept)
        while self._size > self._limit:
            self._size -= BESIDE + len(self._kept.popitem(last=False)[1].kept)

    def find(self, type_url: TypeUrl, name: ResourceName, version: Version) -> Resource | None:
        """Return a replaced resource, or None where it is not kept."""
        return self._kept.get((type_url, name, version))


def left(
    cache: SnapshotCache, replaced: Mapping[GroupKey, Snapshot], served: Mapping[NodeKey, GroupKey]
) -> Iterator[Resource]:
    """Yield what proxies have left with the group that they were `served` with before.

    So leaves one that rejects a version: it is served with a group of its own from then on, while the other
    has that version still. `replaced` are the snapshots of groups that have changed, or gone, in this moment.
    """
    moves = {(before, cache.group(node)): None for node, before in served.items()}  # many make the same
    for before, after in moves:
        old = replaced.get(before) or cache.snapshots().get(before)
        if old is not None and after not in (None, before):
            yield from changed(old, cache.snapshots()[after].changed_since(old))


def changed(old: Snapshot, names: Mapping[TypeUrl, frozenset[ResourceName]]) -> Iterator[Resource]:
    """Yield the resources of these names that a snapshot has."""
    for type_url, these in names.items():
        there = old.resources(type_url)
        yield from (found for name in these if (found := there.get(name)) is not None)
