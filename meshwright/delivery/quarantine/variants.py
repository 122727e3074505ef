"""Variants of groups: each proxy with rejections belongs to a variant of the group.

A variant is named after its content, for example `shop/cart|cart|1f3a9c02|withheld|3f2a9c41d07be856`, so
proxies with equal rejections share one snapshot in the cache.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from meshwright.delivery.quarantine.acknowledged_resources import AcknowledgedResources
from meshwright.delivery.quarantine.fallback import Empty, Exclusion, Exclusions, Fallback, Good, fallback
from meshwright.delivery.quarantine.record import Record
from meshwright.delivery.quarantine.records import Records
from meshwright.delivery.quarantine.reduced_snapshot import units_of
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import Reference, Resource
from xds.protocol.resources.snapshot import Snapshot

KNOWN: Final = 64
"""Maximum number of cached fallbacks, reused when the next proxy rejects the same versions."""


class Variants:
    """Groups for proxies with reduced snapshots. Proxies without rejections remain in the computed group."""

    def __init__(self, records: Records, accepted: AcknowledgedResources, empty: Empty) -> None:
        self._records = records
        self._accepted = accepted
        self._empty = empty
        self._snapshots: dict[GroupKey, Snapshot] = {}
        self._known: dict[tuple[object, ...], list[Fallback]] = {}

    def served(self, node: NodeKey) -> Snapshot | None:
        """Return the snapshot served to a proxy, or `None`."""
        record = self._records.by_node.get(node)
        if record is None or record.variant is None:
            return self._records.own(node)
        return self._snapshots[record.variant]

    def all_served(self) -> PublishedSnapshots:
        """Return the published snapshots with the variants in place."""
        published, records = self._records.published, self._records.by_node.items()
        moved = {node: record.variant for node, record in records if record.variant is not None}
        return replace(
            published,
            snapshots=published.snapshots.changed(self._snapshots),
            members=published.members.changed(moved),
        )

    def exclusions(self) -> Exclusions:
        """Return the excluded units and versions by proxy, for a computation from scratch."""
        by_node = {node: record.exclusion() for node, record in self._records.by_node.items()}
        return Exclusions(by_node, self._empty)

    def computed_anew(self) -> None:
        """Clear the cached fallbacks, because groups have new snapshots."""
        self._known.clear()

    def redirected(self, step: Step, nodes: Iterable[NodeKey]) -> Step:
        """Return the step, extended by the moves of these proxies to the variants needed now."""
        snapshots, members = dict(step.snapshots), dict(step.members)
        records = self._records.by_node
        left: set[GroupKey] = set()
        for node in nodes:
            record, group = records[node], self._records.group(node)
            if record.variant is not None:
                left.add(record.variant)
                members.setdefault(node, group)  # unless the step itself has another place for it
                record.variant = None
            result = None if group is None else self._update_record(node, group, record)
            if group is None or result is None:
                del records[node]
            elif result.snapshot is not self._records.own(node):
                name = _variant_name(group, result.snapshot)
                members[node], record.variant = name, name
                # Equal names mean equal content, but the recipe of a resource may have changed, and the
                # newest is kept.
                if self._snapshots.get(name) != result.snapshot:
                    self._snapshots[name] = result.snapshot
                snapshots[name] = self._snapshots[name]
        # A variant is removed only when no record refers to it, because proxies outside this step may be in
        # it.
        for name in left - {record.variant for record in records.values()}:
            del self._snapshots[name]
            snapshots[name] = None
        return replace(step, snapshots=snapshots, members=members)

    def _update_record(self, node: NodeKey, group: GroupKey, record: Record) -> Fallback | None:
        """Update a record with the computed snapshot, and return the fallback to serve.

        The result is `None` if no accusation is left.
        """
        own = self._records.published.snapshots[group]
        record.lapse(own, self._records.units(group))
        result = self._fallback(group, own, record, lambda key: self._good(node, group, record, key))
        record.good = {key: good for key, good in result.looked_up.items() if good is not None}
        record.trim(own, result.looked_up)
        return result if record.is_about(own) else None

    def _fallback(self, group: GroupKey, own: Snapshot, record: Record, good: Good) -> Fallback:
        """Return the fallback for a record, shared by proxies with equal rejections and good versions."""
        same = (group, frozenset(record.rejected.items()), record.units)
        for item in self._known.get(same, ()):
            if all(good(key) == it for key, it in item.looked_up.items()):
                return item
        excluded = Exclusion(MappingProxyType(dict(record.rejected)), units=record.units)
        result = fallback(own, excluded, self._empty, good)
        if sum(map(len, self._known.values())) >= KNOWN:
            self._known.clear()
        self._known.setdefault(same, []).append(result)
        return result

    def _good(self, node: NodeKey, group: GroupKey, record: Record, key: Reference) -> Resource | None:
        """Return the good version of a resource: the one served instead already, else an acknowledged one."""
        rejected, out = record.rejected.get(key, frozenset()), record.units
        kept = record.good.get(key)
        candidates = (*(() if kept is None else (kept,)), *self._accepted.good(node, group, key))
        return next(
            (e for e in candidates if e.version not in rejected and out.isdisjoint(units_of(e))), None
        )


def _variant_name(group: GroupKey, snapshot: Snapshot) -> GroupKey:
    """Return the name of a variant: the name of its group, and a hash of the content."""
    content = "\0".join(f"{type_url}\0{snapshot.version(type_url)}" for type_url in snapshot.types())
    return GroupKey(f"{group}|withheld|{hashlib.sha256(content.encode()).hexdigest()[:16]}")
