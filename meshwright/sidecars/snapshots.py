"""View of the shared snapshots that contains only those for one driver."""

from collections.abc import Callable

from xds.cache import NodeKey, Snapshots, Watch
from xds.protocol.resources.resource import TypeUrl
from xds.protocol.resources.snapshot import Snapshot


class OwnSnapshots:
    """The snapshots that have resources of this driver's types.

    A workload may be given another kind of proxy while a proxy of the old kind is still connected. That proxy
    keeps its configuration: for this driver the node has no snapshot. Without this filter, the new snapshot
    would look as if all old resources had been removed.
    """

    def __init__(self, snapshots: Snapshots, types: frozenset[TypeUrl]) -> None:
        self._snapshots = snapshots
        self._types = types

    def snapshot(self, node: NodeKey, stream: int | None = None) -> Snapshot | None:
        """Return the snapshot of a node or, with `stream`, of one of its streams.

        None without resources of these types.
        """
        result = self._snapshots.snapshot(node, stream)
        return result if result is not None and any(map(result.resources, self._types)) else None

    def watch(self, node: NodeKey, wake: Callable[[], None]) -> Watch:
        """Start to watch for changes of a node's snapshot.

        `wake` may also be called for resources of other drivers.
        """
        return self._snapshots.watch(node, wake)

    def unwatch(self, watch: Watch) -> None:
        """End a watch that `watch` has started."""
        self._snapshots.unwatch(watch)
