"""Which snapshot each node has: groups of nodes share one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NewType

from xds.resource import Reference, Resource
from xds.snapshot import InconsistentError, Snapshot

NodeKey = NewType("NodeKey", str)
GroupKey = NewType("GroupKey", str)


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """A stream's interest in one node; `wake` is called when the node's snapshot is another one."""

    node: NodeKey
    wake: Callable[[], None]


class SnapshotCache:
    """The snapshots in force; used from one event loop."""

    def __init__(self) -> None:
        self._groups: Mapping[GroupKey, Snapshot] = {}
        self._members: Mapping[NodeKey, GroupKey] = {}
        self._watches: dict[NodeKey, set[Watch]] = {}

    def publish(self, groups: Mapping[GroupKey, Snapshot], members: Mapping[NodeKey, GroupKey]) -> int:
        """Replace all; return how many nodes with a stream are concerned.

        A node that is in no group any more is not told anything: its stream keeps what it has, and never
        gets an empty configuration; a new stream of it is held silent. A snapshot equal to the one before
        concerns nobody, and the earlier object stays. Raises InconsistentError for a snapshot that refers
        to what it does not have, KeyError when a member's group is missing; then nothing has changed.
        """
        settled = {key: self._settled(key, snapshot) for key, snapshot in groups.items()}
        before = {node: self.snapshot(node) for node in self._watches}
        for group in members.values():
            settled[group]
        self._groups, self._members = settled, dict(members)
        concerned = [
            node
            for node, old in before.items()
            if (new := self.snapshot(node)) is not None and new is not old
        ]
        for node in concerned:
            for watch in tuple(self._watches[node]):
                watch.wake()
        return len(concerned)

    def update(self, group: GroupKey, put: Iterable[Resource] = (), removed: Iterable[Reference] = ()) -> int:
        """Change single resources of a group; return how many nodes with a stream are concerned.

        Raises as `publish` does.
        """
        old = self._groups.get(group, Snapshot.of(()))
        return self.publish({**self._groups, group: old.changed(put, removed)}, self._members)

    def snapshot(self, node: NodeKey) -> Snapshot | None:
        """Return the node's snapshot, or None while there is none for it."""
        group = self._members.get(node)
        return None if group is None else self._groups[group]

    def snapshots(self) -> Mapping[GroupKey, Snapshot]:
        """Return the snapshots in force by group."""
        return self._groups

    def group(self, node: NodeKey) -> GroupKey | None:
        """Return the node's group, or None while it has none."""
        return self._members.get(node)

    def watch(self, node: NodeKey, wake: Callable[[], None]) -> Watch:
        """Begin to watch; the watch must be handed to `unwatch` in the end."""
        watch = Watch(node, wake)
        self._watches.setdefault(node, set()).add(watch)
        return watch

    def unwatch(self, watch: Watch) -> None:
        """End one watch; others of the same node go on (rule S9)."""
        watches = self._watches[watch.node]
        watches.discard(watch)
        if not watches:
            del self._watches[watch.node]

    def _settled(self, key: GroupKey, snapshot: Snapshot) -> Snapshot:
        old = self._groups.get(key)
        if old is not None and (old is snapshot or old == snapshot):
            return old
        if missing := snapshot.missing():
            raise InconsistentError(key, missing)
        return snapshot
