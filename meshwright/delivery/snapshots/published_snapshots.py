"""Published snapshots, and the steps by which they change.

If the computation of a group fails, the proxies keep their last snapshot and the other groups go on.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.layers import Layers
from xds.protocol.resources.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed computation of a group: the error, the number of proxies, and how many keep a snapshot."""

    group: str
    error: str
    proxies: int
    kept: int


@dataclass(frozen=True, slots=True)
class PublishedSnapshots:
    """Snapshots by group, the group of each proxy, and the failed groups."""

    snapshots: Layers[GroupKey, Snapshot] = field(default_factory=Layers)
    members: Layers[NodeKey, GroupKey] = field(default_factory=Layers)
    failed: Layers[GroupKey, Failure] = field(default_factory=Layers)

    def snapshot(self, node: NodeKey) -> Snapshot | None:
        """Return a proxy's snapshot, or `None`."""
        group = self.members.get(node)
        return None if group is None else self.snapshots[group]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The failed groups, sorted by name."""
        return tuple(self.failed[name] for name in sorted(self.failed))


@dataclass(frozen=True, slots=True)
class Step:
    """Difference between two states: new values, and `None` for removed entries.

    `absent` are the removed proxies whose workload is known, so they are merely disconnected.
    """

    snapshots: Mapping[GroupKey, Snapshot | None] = field(default_factory=dict)
    members: Mapping[NodeKey, GroupKey | None] = field(default_factory=dict)
    failed: Mapping[GroupKey, Failure | None] = field(default_factory=dict)
    absent: frozenset[NodeKey] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.snapshots or self.members)

    def after(self, before: PublishedSnapshots) -> PublishedSnapshots:
        """Return the state after this step; the cost depends on the size of the step only."""
        return PublishedSnapshots(
            before.snapshots.changed(self.snapshots),
            before.members.changed(self.members),
            before.failed.changed(self.failed),
        )


class Result:
    """Collector of changed snapshots, group members and failures, to be returned as a step."""

    def __init__(self, before: PublishedSnapshots) -> None:
        self.before = before
        self._snapshots: dict[GroupKey, Snapshot | None] = {}
        self._members: dict[NodeKey, GroupKey | None] = {}
        self._failed: dict[GroupKey, Failure | None] = {}

    def left(self, name: GroupKey | None, nodes: Iterable[NodeKey]) -> None:
        """Remove these nodes from a group, unless another group, or the same one, has added them.

        Without a name: remove everything served before and not added again.
        """
        # `setdefault` throughout, so an entry made by `add` or `fail` wins in either order.
        for node in nodes:
            self._members.setdefault(node, None)
            self._snapshots.setdefault(_kept_name(node), None)
        for snapshot in self.before.snapshots if name is None else (name,):
            self._snapshots.setdefault(snapshot, None)
        for group_key in self.before.failed if name is None else (name,):
            self._failed.setdefault(group_key, None)

    def add(self, name: GroupKey, nodes: Iterable[NodeKey], snapshot: Snapshot) -> None:
        """Add the computed snapshot of a group, with the proxies in the group."""
        self._snapshots[name] = snapshot
        self._members.update(dict.fromkeys(nodes, name))

    def fail(self, name: GroupKey, nodes: tuple[NodeKey, ...], error: Exception) -> None:
        """Keep the last snapshot of each proxy under a separate name, because groups may have changed.

        Example of such a name: `kept:a1.cart.shop`.
        """
        self._snapshots[name] = None
        kept = 0
        for node in nodes:
            if (last := self.before.snapshot(node)) is not None:
                self._members[node] = _kept_name(node)
                self._snapshots[_kept_name(node)] = last
                kept += 1
        self._failed[name] = Failure(name, f"{type(error).__name__}: {error}", len(nodes), kept)

    def step(self, is_known: Callable[[NodeKey], bool]) -> Step:
        """Return the step from `before` to the collected state; `is_known` checks a proxy's workload."""
        return Step(
            {
                name: snapshot
                for name, snapshot in self._snapshots.items()
                if self.before.snapshots.get(name) is not snapshot
            },
            {node: group for node, group in self._members.items() if self.before.members.get(node) != group},
            self._failed,
            frozenset(node for node, group in self._members.items() if group is None and is_known(node)),
        )


def _kept_name(node: NodeKey) -> GroupKey:
    return GroupKey(f"kept:{node}")
