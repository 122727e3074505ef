"""Cache of replaced resources, so debug pages can compare two versions of a resource."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot

BYTES: Final = 8 * 1024 * 1024
"""Maximum bytes of all kept resources, with compressed bodies; the oldest are dropped first."""

BESIDE: Final = 768
"""Estimated bytes of a resource besides its body (objects, name, references), which often exceed the body."""


class ReplacedResources:
    """The most recently replaced resources by type, name and version, up to a size limit; never secrets."""

    def __init__(self, limit: int = BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[tuple[TypeUrl, ResourceName, Version], Resource] = OrderedDict()

    def keep(self, resource: Resource) -> None:
        """Keep a resource that at least one group or proxy no longer has."""
        key = (resource.type_url, resource.name, resource.version)
        if resource.secret or key in self._kept:
            return
        # The recipe refers to the policy behind the resource, of any size, and no page asks for it.
        if resource.recipe is not None or resource.renewal is not None:
            resource = replace(resource, recipe=None, renewal=None)
        self._kept[key] = resource
        self._size += BESIDE + len(resource.kept)
        while self._size > self._limit:
            self._size -= BESIDE + len(self._kept.popitem(last=False)[1].kept)

    def find(self, type_url: TypeUrl, name: ResourceName, version: Version) -> Resource | None:
        """Return a replaced resource, or `None` if it is not kept."""
        return self._kept.get((type_url, name, version))


def left(
    cache: SnapshotCache, replaced: Mapping[GroupKey, Snapshot], served: Mapping[NodeKey, GroupKey]
) -> Iterator[Resource]:
    """Yield resources that proxies lost because they changed their group.

    For example: a proxy that rejects a version gets a group of its own, while the other proxies keep that
    version. `served` is the former group of each proxy, and `replaced` are the former snapshots of changed
    and removed groups.
    """
    moves = {
        (before, cache.group(node)): None for node, before in served.items()
    }  # one entry for all proxies that move alike
    for before, after in moves:
        old = replaced.get(before) or cache.snapshots().get(before)
        if old is not None and after not in (None, before):
            yield from changed(old, cache.snapshots()[after].changed_since(old))


def changed(old: Snapshot, names: Mapping[TypeUrl, frozenset[ResourceName]]) -> Iterator[Resource]:
    """Yield the resources of the snapshot `old` with these names."""
    for type_url, these in names.items():
        there = old.resources(type_url)
        yield from (resource for name in these if (resource := there.get(name)) is not None)
