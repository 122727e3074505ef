"""Published snapshots, and the records of rejections by proxies."""

from collections.abc import Iterable, Iterator, Mapping

from catalog.policy.units import Unit, UnitId, describe
from meshwright.delivery.quarantine.record import Record, StreamRecord
from meshwright.delivery.quarantine.reduced_snapshot import all_units
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots, Step
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.snapshot import Snapshot


class Records:
    """Records by proxy and by stream.

    `published` are the computed snapshots of all proxies, before exclusions.

    `earlier` are the verdicts on disconnected proxies, from before the start or their last connection.
    """

    def __init__(self, verdicts: Iterable[Verdict] = ()) -> None:
        self.published = PublishedSnapshots()
        self.by_node: dict[NodeKey, Record] = {}
        self.by_stream: dict[int, StreamRecord] = {}
        self.earlier: dict[NodeKey, list[Verdict]] = {}
        self._units: dict[GroupKey, Mapping[UnitId, Unit]] = {}
        for verdict in verdicts:
            self.earlier.setdefault(verdict.proxy, []).append(verdict)

    def lapse(self, nodes: Iterable[NodeKey]) -> None:
        """Keep the verdicts on rejections by disconnected proxies in `earlier`."""
        for node in self.by_node.keys() & nodes:
            if verdicts := self.verdicts(node):
                self.earlier[node] = [*verdicts]

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
