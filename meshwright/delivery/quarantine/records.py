"""Published snapshots, and the records of rejections by proxies."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from catalog.policy.units import Unit, UnitId, describe
from meshwright.delivery.quarantine.record import Record, StreamRecord
from meshwright.delivery.quarantine.reduced_snapshot import all_units
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.snapshot import Snapshot

BEHIND_SECONDS: Final = 60.0
"""Longest time by which this server may read a change of policy later than another server."""


class Records:
    """Records by proxy and by stream.

    `published` are the computed snapshots of all proxies, before exclusions.

    `earlier` are the verdicts on disconnected proxies, from before the start or their last connection, or
    from other servers. Another server may have read policy that this server has not read yet: a verdict on
    such policy waits in `earlier` too, for at most BEHIND_SECONDS. `waiting` are the connected proxies with
    such verdicts.
    """

    def __init__(self, verdicts: Iterable[Verdict] = ()) -> None:
        self.published = PublishedSnapshots()
        self.by_node: dict[NodeKey, Record] = {}
        self.by_stream: dict[int, StreamRecord] = {}
        self.earlier: dict[NodeKey, tuple[Verdict, ...]] = {}
        self.waiting: set[NodeKey] = set()
        self._heard_at: dict[NodeKey, float] = {}
        self._units: dict[GroupKey, Mapping[UnitId, Unit]] = {}
        for verdict in verdicts:
            self.earlier[verdict.proxy] = (*self.earlier.get(verdict.proxy, ()), verdict)

    def lapse(self, nodes: Iterable[NodeKey]) -> None:
        """Keep the verdicts on rejections by disconnected proxies in `earlier`."""
        for node in self.by_node.keys() & nodes:
            self.set_aside(node, self.verdicts(node))

    def set_aside(self, node: NodeKey, found: Iterable[Verdict], ended: Collection[UnitId] = ()) -> None:
        """Change the verdicts on a proxy in `earlier`: add those in `found`, and drop those in `ended`."""
        verdicts = {verdict.unit: verdict for verdict in (*self.earlier.get(node, ()), *found)}
        left = tuple(verdict for unit, verdict in verdicts.items() if unit not in ended)
        if left:
            self.earlier[node] = left
        else:
            self.earlier.pop(node, None)
            self._heard_at.pop(node, None)

    def heard(self, node: NodeKey, found: Iterable[Verdict], ended: Collection[UnitId], now: float) -> None:
        """Set aside the verdicts of another server on a proxy, unless they are known.

        `now` is the present time in monotonic seconds.
        """
        proved = self.by_node[node].proved if node in self.by_node else frozenset()
        news = [verdict for verdict in found if verdict.unit not in proved]
        self.set_aside(node, news, ended)
        if news and node in self.earlier:
            self._heard_at[node] = now

    def take_earlier(self, node: NodeKey, now: float) -> tuple[Verdict, ...]:
        """Take the earlier verdicts on policy that a connected proxy has now; the others end, or wait."""
        self.waiting.discard(node)
        if (group := self.group(node)) is None or node not in self.earlier:
            return ()
        verdicts, units = self.earlier.pop(node), self.units(group)
        heard_at = self._heard_at.pop(node, None)
        others = tuple(verdict for verdict in verdicts if verdict.unit not in units)
        if others and heard_at is not None and now - heard_at < BEHIND_SECONDS:
            self.earlier[node], self._heard_at[node] = others, heard_at
            self.waiting.add(node)
        return tuple(verdict for verdict in verdicts if verdict.unit in units)

    def verdicts(self, node: NodeKey) -> tuple[Verdict, ...]:
        """Return the units of policy proved guilty by a proxy, after the proxy has accepted the rest."""
        return tuple(
            Verdict(node, item, *one.key, describe(unit), one.message, one.times, one.date)
            for item, one in self.by_node[node].accused.items()
            if isinstance(item, str)
            and one.times
            and one.confirmed
            and (unit := self.unit(node, item)) is not None
        )

    def take(self, step: Step) -> None:
        """Apply a step of computed snapshots to `published`."""
        for group in step.snapshots:
            self._units.pop(group, None)
        self.published = step.after(self.published)

    def all_of(self, node: NodeKey) -> Iterator[Record]:
        """Yield a proxy's records of rejections: the proxy's own, then those of single streams."""
        if (own := self.by_node.get(node)) is not None:
            yield own
        yield from (record.record for record in self.by_stream.values() if record.node == node)

    def nodes(self) -> list[NodeKey]:
        """Return the proxies with a record, or with a record of a stream; sorted."""
        return sorted(self.by_node.keys() | {record.node for record in self.by_stream.values()})

    def group(self, node: NodeKey) -> GroupKey | None:
        """Return the computed group of a proxy, or `None` if the proxy's workload is not known."""
        return self.published.members.get(node)

    def own(self, node: NodeKey) -> Snapshot | None:
        """Return the computed snapshot of a proxy, or `None`."""
        return self.published.snapshot(node)

    def units(self, group: GroupKey) -> Mapping[UnitId, Unit]:
        """Return the units of policy in a group's snapshot by id; searched once for each snapshot."""
        result = self._units.get(group)
        if result is None:
            result = self._units[group] = all_units(self.published.snapshots[group])
        return result

    def unit(self, node: NodeKey, key: UnitId) -> Unit | None:
        """Return the unit of policy with this id in the computed snapshot of a proxy, or `None`."""
        group = self.group(node)
        return None if group is None else self.units(group).get(key)
