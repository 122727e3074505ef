"""One Envoy that gets any resources by ADS and reports its rejections."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from tests.golden.running_mesh import LiveMesh
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import CLUSTER, LISTENER, ROUTE, ResourceName, TypeUrl
from xds.protocol.resources.snapshot import Snapshot
from xds.stream_status import SyncState

NODE = NodeKey("u.receiver.golden")
RECEIVER = """
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: receiver, namespace: golden}
spec: {address: 127.0.90.1, uuid: u, serviceAccount: receiver}
"""


async def start_receiver(state: Path, ends: AsyncExitStack, drain_seconds: int = 45) -> LiveMesh:
    """Start an Envoy whose configuration its user chooses; it ends with the exit stack."""
    mesh = await LiveMesh.start(state, RECEIVER, ends)
    await mesh.envoy("u", drain_seconds=drain_seconds)
    return mesh


async def push(mesh: LiveMesh, snapshot: Snapshot) -> Mapping[str, str]:
    """Publish a snapshot to the Envoy; return its rejections by type once it has answered everything."""
    changed = snapshot.changed_since(mesh.cache.snapshot(NODE))
    mesh.cache.publish({GroupKey("g"): snapshot}, {NODE: GroupKey("g")})
    async with asyncio.timeout(60):
        while not _answered(mesh, snapshot, changed):
            await asyncio.sleep(0.01)
    (status,) = mesh.server.statuses()
    return {kind.type_url: kind.rejection.message for kind in status.types if kind.rejection is not None}


def _answered(mesh: LiveMesh, snapshot: Snapshot, changed: Mapping[TypeUrl, frozenset[ResourceName]]) -> bool:
    """Return whether all requested resources were sent as in the snapshot, and answered."""
    statuses = mesh.server.statuses()
    if len(statuses) != 1 or statuses[0].types[0].type_url != CLUSTER or len(statuses[0].types) < 2:
        return False
    refused = any(
        kind.state is SyncState.REJECTED for kind in statuses[0].types if kind.type_url in (LISTENER, ROUTE)
    )
    for kind in statuses[0].types:
        if kind.state is SyncState.PENDING:
            return False
        there = snapshot.resources(kind.type_url).keys()
        # Who refuses a listener or route keeps the clusters that it had (O2).
        keeps = refused and kind.type_url == CLUSTER
        every = kind.type_url in (CLUSTER, LISTENER) and not keeps
        if (every and set(kind.names) != there) or (keeps and not there <= set(kind.names)):
            return False
        # Until it is sent, what was before it is synced still, perhaps under the same names.
        waiting = changed.get(kind.type_url, frozenset()) & there & set(kind.names)
        expected = every or kind.state is SyncState.REJECTED or waiting
        if expected and kind.sent_version != snapshot.version(kind.type_url):
            return False
    return True
