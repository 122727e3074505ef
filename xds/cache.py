"""Which snapshot each node has: groups of nodes share one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NewType, Protocol

from xds.protocol.resources.resource import Reference, Resource
from xds.protocol.resources.snapshot import InconsistentError, Snapshot

NodeKey = NewType("NodeKey", str)
GroupKey = NewType("GroupKey", str)


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """A stream's interest in one node; `wake` is called when the node's snapshot is another one, or none."""

    node: NodeKey
    wake: Callable[[], None]


Lessening = Callable[[Snapshot], Snapshot]
"""Returns what one stream is served of its node's snapshot; the same object for the same snapshot."""


class Snapshots(Protocol):
    """Where a server finds what a node is to have, and hears that it is something else now."""

    def snapshot(self, node: NodeKey, stream: int | None = None) -> Snapshot | None:
        """Return the snapshot of a node, or of one of its streams; None while the node has none."""

    def watch(self, node: NodeKey, wake: Callable[[], None]) -> Watch:
        """Begin to watch; the watch must be handed to `unwatch` in the end."""

    def unwatch(self, watch: Watch) -> None:
        """End one watch."""


class WatchListener(Protocol):
    """Whoever hears that a node is watched now, or by nobody any more; must be quick and not raise."""

    def __call__(self, node: NodeKey, *, here: bool) -> None:
        """Take note of it."""


def unattended(node: NodeKey, *, here: bool) -> None:
    """Take no notice."""
    del node, here


def _without(watches: tuple[Watch, ...], ended: Watch) -> tuple[Watch, ...]:
    return tuple(each for each in watches if each is not ended)


def _is_seen(before: Snapshot | None, now: Snapshot) -> bool:
    """Say whether a client sees that there is another snapshot; all of a group take the same step."""
    return before is None or bool(now.changed_since(before))


class SnapshotCache:
    """The snapshots in force; used from one event loop.

    `attended` is told when a node's first watch begins, and when its last has ended.
    """

    def __init__(self, attended: WatchListener = unattended) -> None:
        self._attended = attended
        self._groups: dict[GroupKey, Snapshot] = {}
        self._members: dict[NodeKey, GroupKey] = {}
        self._nodes: dict[GroupKey, set[NodeKey]] = {}
        self._watches: dict[NodeKey, tuple[Watch, ...]] = {}  # a set of one takes what four such do
        self._lessened: dict[int, Lessening] = {}  # by the number of a stream

    def publish(self, groups: Mapping[GroupKey, Snapshot], members: Mapping[NodeKey, GroupKey]) -> int:
        """Replace all; return how many nodes with a stream are concerned.

        A node that is in no group any more never gets an empty configuration: its client keeps what it
        has, and its streams are held silent, as new ones are. A snapshot equal to the one before concerns
        nobody, and the earlier object stays. Raises InconsistentError for a snapshot that refers to what it
        does not have, KeyError when a member's group is missing; then nothing has changed.
        """
        settled = {key: self._settled(key, snapshot) for key, snapshot in groups.items()}
        before = {node: self.snapshot(node) for node in self._watches}
        for group in members.values():
            settled[group]
        self._groups, self._members, self._nodes = settled, {}, {}
        for node, group in members.items():
            self._move(node, group)
        return self._wake(before)

    def update(self, group: GroupKey, put: Iterable[Resource] = (), removed: Iterable[Reference] = ()) -> int:
        """Change single resources of a group; return how many nodes with a stream are concerned.

        Raises as `publish` does.
        """
        old = self._groups.get(group, Snapshot.of(()))
        return self.publish_changes({group: old.changed(put, removed)}, {})

    def publish_changes(
        self,
        groups: Mapping[GroupKey, Snapshot | None],
        members: Mapping[NodeKey, GroupKey | None],
    ) -> int:
        """Replace some groups' snapshots and some nodes' groups (None: gone); return the nodes concerned.

        Costs what is named here, and a look at each watched node of the groups named; the rest of the
        groups is not walked. Otherwise as `publish`, errors included; taking away a group that still has
        members raises KeyError.
        """
        settled = {
            key: None if snapshot is None else self._settled(key, snapshot)
            for key, snapshot in groups.items()
        }
        for group in members.values():
            if group is not None and settled.get(group, self._groups.get(group)) is None:
                raise KeyError(group)
        for key, snapshot in settled.items():
            if snapshot is None and any(members.get(node, key) == key for node in self._nodes.get(key, ())):
                raise KeyError(key)
        # Nothing raises from here on, and whoever may be concerned is asked before anything moves: afterwards
        # a node's group is another one.
        near = {node for key in settled for node in self._nodes.get(key, ())} | members.keys()
        before = {node: self.snapshot(node) for node in near if node in self._watches}
        for key, snapshot in settled.items():
            if snapshot is None:
                self._groups.pop(key, None)
            else:
                self._groups[key] = snapshot
        for node, group in members.items():
            self._move(node, group)
        return self._wake(before)

    def snapshot(self, node: NodeKey, stream: int | None = None) -> Snapshot | None:
        """Return the snapshot of a node, or of one of its streams; None while the node has none."""
        group = self._members.get(node)
        if group is None:
            return None
        less = None if stream is None else self._lessened.get(stream)
        return self._groups[group] if less is None else less(self._groups[group])

    def lessen(self, node: NodeKey, stream: int, less: Lessening | None) -> None:
        """Serve one stream of a node less than the others, or again the same (None)."""
        if less is None:
            self._lessened.pop(stream, None)
        else:
            self._lessened[stream] = less
        for watch in self._watches.get(node, ()):
            watch.wake()

    def snapshots(self) -> Mapping[GroupKey, Snapshot]:
        """Return the snapshots in force by group."""
        return self._groups

    def group(self, node: NodeKey) -> GroupKey | None:
        """Return the node's group, or None while it has none."""
        return self._members.get(node)

    def members(self, group: GroupKey) -> frozenset[NodeKey]:
        """Return the nodes of a group."""
        return frozenset(self._nodes.get(group, ()))

    def watch(self, node: NodeKey, wake: Callable[[], None]) -> Watch:
        """Begin to watch; the watch must be handed to `unwatch` in the end."""
        watch = Watch(node, wake)
        if node not in self._watches:
            self._watches[node] = ()
            self._attended(node, here=True)
        self._watches[node] += (watch,)
        return watch

    def unwatch(self, watch: Watch) -> None:
        """End one watch; others of the same node go on (rule S9)."""
        watches = self._watches[watch.node] = _without(self._watches[watch.node], watch)
        if not watches:
            del self._watches[watch.node]
            self._attended(watch.node, here=False)

    def _move(self, node: NodeKey, group: GroupKey | None) -> None:
        old = self._members.pop(node, None)
        if old is not None:
            self._nodes[old].discard(node)
            if not self._nodes[old]:
                del self._nodes[old]
        if group is not None:
            self._members[node] = group
            self._nodes.setdefault(group, set()).add(node)

    def _wake(self, before: Mapping[NodeKey, Snapshot | None]) -> int:
        """Wake the watches of those nodes that have another snapshot now, or none any more.

        Return how many nodes see something else in theirs; the streams of the others go on from it as well.
        """
        other = {node: new for node, old in before.items() if (new := self.snapshot(node)) is not old}
        for node in other:
            for watch in self._watches[node]:
                watch.wake()
        return sum(new is not None and _is_seen(before[node], new) for node, new in other.items())

    def _settled(self, key: GroupKey, snapshot: Snapshot) -> Snapshot:
        old = self._groups.get(key)
        if old is not None and (old is snapshot or snapshot == old):
            return old
        if missing := snapshot.missing():
            raise InconsistentError(key, missing)
        return snapshot
