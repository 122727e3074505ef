"""What is served, and the steps by which it changes.

A group whose computation fails leaves its proxies with what they had; the others go on.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.layers import Layers
from xds.protocol.resources.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Failure:
    """A group that could not be computed, why, and how many of its proxies go on with what they had."""

    group: str
    error: str
    proxies: int
    kept: int


@dataclass(frozen=True, slots=True)
class PublishedSnapshots:
    """What is served: snapshots by group, the group of each proxy, and the groups that failed."""

    snapshots: Layers[GroupKey, Snapshot] = field(default_factory=Layers)
    members: Layers[NodeKey, GroupKey] = field(default_factory=Layers)
    failed: Layers[GroupKey, Failure] = field(default_factory=Layers)

    def snapshot(self, node: NodeKey) -> Snapshot | None:
        """Return a proxy's snapshot, or None while it has none."""
        group = self.members.get(node)
        return None if group is None else self.snapshots[group]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The groups that failed, sorted by name."""
        return tuple(self.failed[name] for name in sorted(self.failed))


@dataclass(frozen=True, slots=True)
class Step:
    """How what is served differs from what was before: new values, None for what is gone.

    Of the proxies that are gone from it, `absent` are those that are known, and not here to be served.
    """

    snapshots: Mapping[GroupKey, Snapshot | None] = field(default_factory=dict)
    members: Mapping[NodeKey, GroupKey | None] = field(default_factory=dict)
    failed: Mapping[GroupKey, Failure | None] = field(default_factory=dict)
    absent: frozenset[NodeKey] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.snapshots or self.members)

    def after(self, before: PublishedSnapshots) -> PublishedSnapshots:
        """Return what is served after this step; it costs what that changes."""
        return PublishedSnapshots(
            before.snapshots.changed(self.snapshots),
            before.members.changed(self.members),
            before.failed.changed(self.failed),
        )


class Result:
    """Collects how the groups that were touched change."""

    def __init__(self, before: PublishedSnapshots) -> None:
        self.before = before
        self._snapshots: dict[GroupKey, Snapshot | None] = {}
        self._members: dict[NodeKey, GroupKey | None] = {}
        self._failed: dict[GroupKey, Failure | None] = {}

    def left(self, name: GroupKey | None, nodes: Iterable[NodeKey]) -> None:
        """Take the nodes that a group had out of it, unless another one, or itself, has them now.

        Without a name: take everything away that was served before and is not served again.
        """
        for node in nodes:
            self._members.setdefault(node, None)
            self._snapshots.setdefault(_kept(node), None)
        for each in self.before.snapshots if name is None else (name,):
            self._snapshots.setdefault(each, None)
        for each in self.before.failed if name is None else (name,):
            self._failed.setdefault(each, None)

    def add(self, name: GroupKey, nodes: Iterable[NodeKey], snapshot: Snapshot) -> None:
        """Serve a group's nodes with its snapshot."""
        self._snapshots[name] = snapshot
        self._members.update(dict.fromkeys(nodes, name))

    def fail(self, name: GroupKey, nodes: tuple[NodeKey, ...], error: Exception) -> None:
        """Leave each proxy with its last snapshot, under a name of its own: groups may have changed."""
        self._snapshots[name] = None
        kept = 0
        for node in nodes:
            if (last := self.before.snapshot(node)) is not None:
                self._members[node] = _kept(node)
                self._snapshots[_kept(node)] = last
                kept += 1
        self._failed[name] = Failure(name, f"{type(error).__name__}: {error}", len(nodes), kept)

    def step(self, is_known: Callable[[NodeKey], bool]) -> Step:
        """Return what differs from before; `is_known` says whether a proxy's workload is there."""
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


def _kept(node: NodeKey) -> GroupKey:
    return GroupKey(f"kept:{node}")
