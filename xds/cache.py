"""Cache of the snapshot of each node; all nodes of a group share one snapshot.

A node key names one client, for example one proxy, and a group key names a set of clients with the same
configuration. For example: node `a1.cart.shop`, group `shop/cart|cart|1f3a9c02`. Sharing keeps memory and
encoding cost proportional to groups instead of proxies.

Streams do not poll: each watches a node, and `publish` or `publish_changes` wakes exactly the watches of
nodes with another snapshot object. Every publication is checked first, so an inconsistent snapshot leaves the
cache unchanged.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NewType, Protocol

from xds.protocol.resources.resource import Reference, Resource
from xds.protocol.resources.snapshot import InconsistentError, Snapshot

NodeKey = NewType("NodeKey", str)
GroupKey = NewType("GroupKey", str)


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """The interest of a stream in one node.

    `wake` is called when the node gets another snapshot, or loses the present one.
    """

    node: NodeKey
    wake: Callable[[], None]


Lessening = Callable[[Snapshot], Snapshot]
"""A function from a node's snapshot to the reduced snapshot for one stream.

For the same snapshot the function must return the same object, because streams compare by identity.
"""


class Snapshots(Protocol):
    """The source of snapshots for a server: lookup by node, and notification of changes."""

    def snapshot(self, node: NodeKey, stream: int | None = None) -> Snapshot | None:
        """Return the snapshot of a node or, with `stream`, of one of its streams; None if there is none."""

    def watch(self, node: NodeKey, wake: Callable[[], None]) -> Watch:
        """Start watching a node. The caller must pass the watch to `unwatch` in the end."""

    def unwatch(self, watch: Watch) -> None:
        """End one watch."""


class WatchListener(Protocol):
    """Callback for a node's first watch and for the end of the last one.

    The callback must return quickly and must not raise.
    """

    def __call__(self, node: NodeKey, *, here: bool) -> None:
        """Handle the first watch of a node (`here`), or the end of the last watch (not `here`)."""


def unattended(node: NodeKey, *, here: bool) -> None:
    """Ignore the begin and end of watches of a node: the default of `SnapshotCache`."""
    del node, here


def _without(watches: tuple[Watch, ...], ended: Watch) -> tuple[Watch, ...]:
    return tuple(watch for watch in watches if watch is not ended)


def _is_seen(before: Snapshot | None, now: Snapshot) -> bool:
    """Return whether clients see a difference of two snapshots.

    Cached, so a group pays for one comparison.
    """
    return before is None or bool(now.changed_since(before))


class SnapshotCache:
    """The snapshots in force, by group and node. All methods must be called on one event loop.

    `attended` is called when the first watch of a node begins, and when the last watch has ended.
    """

    def __init__(self, attended: WatchListener = unattended) -> None:
        self._attended = attended
        self._groups: dict[GroupKey, Snapshot] = {}
        self._members: dict[NodeKey, GroupKey] = {}
        self._nodes: dict[GroupKey, set[NodeKey]] = {}
        self._watches: dict[NodeKey, tuple[Watch, ...]] = {}  # a tuple of one takes a quarter of a set of one
        self._lessened: dict[int, Lessening] = {}  # by the number of a stream

    def publish(self, groups: Mapping[GroupKey, Snapshot], members: Mapping[NodeKey, GroupKey]) -> int:
        """Replace all snapshots and memberships; return the number of watched nodes with a visible change.

        A node without a group does not get an empty configuration: the client keeps the last one, and the
        streams stay silent, as new streams do. For a snapshot equal to the one before, the earlier object
        stays in the cache and the nodes of the group do not count.

        Raises InconsistentError for a snapshot with a reference to a missing resource, and KeyError if the
        group of a member is missing. After an error the cache is unchanged.
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
        """Change single resources of a group; return the number of watched nodes with a visible change.

        Raises the same errors as `publish`.
        """
        old = self._groups.get(group, Snapshot.of(()))
        return self.publish_changes({group: old.changed(put, removed)}, {})

    def publish_changes(
        self,
        groups: Mapping[GroupKey, Snapshot | None],
        members: Mapping[NodeKey, GroupKey | None],
    ) -> int:
        """Replace the named snapshots and memberships (None removes one); return the number of changed nodes.

        The cost depends on the named groups and nodes, and on the watched nodes of these groups; other groups
        are not visited. Errors as for `publish`; in addition, removing a group with members raises KeyError.
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
        # Nothing raises from here on, so a failed call changes nothing. Affected nodes are collected before
        # any membership changes, because afterwards a node belongs to its new group.
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
        """Return the snapshot of a node or, with `stream`, of one of its streams; None if there is none."""
        group = self._members.get(node)
        if group is None:
            return None
        less = None if stream is None else self._lessened.get(stream)
        return self._groups[group] if less is None else less(self._groups[group])

    def lessen(self, node: NodeKey, stream: int, less: Lessening | None) -> None:
        """Serve one stream of a node its snapshot changed by `less`, or the unchanged one again (None)."""
        if less is None:
            self._lessened.pop(stream, None)
        else:
            self._lessened[stream] = less
        for watch in self._watches.get(node, ()):
            watch.wake()

    def snapshots(self) -> Mapping[GroupKey, Snapshot]:
        """Return the snapshots in force, by group."""
        return self._groups

    def group(self, node: NodeKey) -> GroupKey | None:
        """Return the group of a node, or None if the node is in no group."""
        return self._members.get(node)

    def members(self, group: GroupKey) -> frozenset[NodeKey]:
        """Return the nodes of a group."""
        return frozenset(self._nodes.get(group, ()))

    def watch(self, node: NodeKey, wake: Callable[[], None]) -> Watch:
        """Start watching a node. The caller must pass the watch to `unwatch` in the end."""
        watch = Watch(node, wake)
        if node not in self._watches:
            self._watches[node] = ()
            self._attended(node, here=True)
        self._watches[node] += (watch,)
        return watch

    def unwatch(self, watch: Watch) -> None:
        """End one watch. Other watches of the same node continue (rule S9)."""
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
        """Wake the watches of nodes with another snapshot object, or none any more.

        Return the number of nodes with a difference visible to clients. The streams of the other nodes are
        woken as well, because they must compare the next snapshot with this one.
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
