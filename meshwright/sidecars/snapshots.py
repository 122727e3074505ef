"""One driver's part of the shared snapshots."""

from collections.abc import Callable

from xds.cache import NodeKey, Snapshots, Watch
from xds.protocol.resources.resource import TypeUrl
from xds.protocol.resources.snapshot import Snapshot


class OwnSnapshots:
    """The snapshots of proxies whose resources are of some types; to others' proxies it has nothing to say.

    A workload may be given another kind of proxy while one of the old kind is still connected: that one
    keeps what it has. It is not told that all its configuration is gone, which the other kind's snapshot
    would seem to say.
    """

    def __init__(self, snapshots: Snapshots, types: frozenset[TypeUrl]) -> None:
        self._snapshots = snapshots
        self._types = types

    def snapshot(self, node: NodeKey, stream: int | None = None) -> Snapshot | None:
        """Return the snapshot of a node, or of one of its streams; None while the node has none here."""
        found = self._snapshots.snapshot(node, stream)
        return found if found is not None and any(map(found.resources, self._types)) else None

    def watch(self, node: NodeKey, wake: Callable[[], None]) -> Watch:
        """Begin to watch; it may be woken for what is not its own."""
        return self._snapshots.watch(node, wake)

    def unwatch(self, watch: Watch) -> None:
        """End one watch."""
        self._snapshots.unwatch(watch)
