"""A program: our server alone in a process, so that its memory can be measured.

`python server.py FOLDER BYTES LEAK` serves endpoints `one` of that size over mutual TLS, with keys issued
below the folder, and prints its port. It keeps LEAK bytes of each stream. For each line of input it publishes
the next edition and prints the number of streams. It ends with its input.
"""

import asyncio
import sys
from pathlib import Path

from protos.envoy.config.endpoint.v3 import endpoint_pb2
from tests.conformance.control_plane import Keys
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import AnyNode, Peer
from xds.limits import Limits
from xds.protocol.resources.resource import Resource, encode
from xds.protocol.resources.snapshot import Snapshot
from xds.server.ads import AdsServer

LIMITS = Limits(streams=None, streams_per_second=None, write_seconds=3600.0).without_budgets()


def endpoints(size: int, edition: int) -> Resource:
    """Return endpoints of about `size` bytes."""
    assignment = endpoint_pb2.ClusterLoadAssignment(cluster_name="one")
    assignment.endpoints.add().locality.zone = f"{edition:09}" + "x" * size
    return encode(assignment)


class LocalCopy(AnyNode):
    """Authenticator that accepts any client, and keeps some bytes for each."""

    def __init__(self, node_key: NodeKey, leak: int) -> None:
        super().__init__(node_key)
        self._leak = leak
        self._kept: list[bytes] = []

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the only node key."""
        if self._leak:
            self._kept.append(bytes(self._leak))
        return super().authenticate(peer)


async def main(folder: Path, size: int, leak: int) -> None:
    """Serve until standard input ends."""
    keys, cache = Keys.make(folder), SnapshotCache()
    group, node = GroupKey("g"), NodeKey("n")
    cache.publish({group: Snapshot.of((endpoints(size, 0),))}, {node: group})
    server = AdsServer(cache, LocalCopy(node, leak), lambda: keys.tls, limits=LIMITS)
    sys.stdout.write(f"{await server.start('127.0.0.1:0')}\n")
    sys.stdout.flush()
    edition = 0
    while await asyncio.to_thread(sys.stdin.readline):
        edition += 1
        cache.update(group, [endpoints(size, edition)])
        sys.stdout.write(f"{len(server.statuses())}\n")
        sys.stdout.flush()
    await server.stop(1)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
