"""Tests of a server that ends some of its streams, so that other servers of the mesh get their share."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from protos.envoy.config.endpoint.v3 import endpoint_pb2
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import AnyNode, Peer, StreamEnd, StreamRefused
from xds.protocol.resources.resource import ENDPOINT, encode
from xds.protocol.resources.snapshot import Snapshot

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]

OK = grpc.StatusCode.OK
MINUTE = 60.0


def _publish(cache: SnapshotCache, version: int) -> None:
    assignment = endpoint_pb2.ClusterLoadAssignment(cluster_name="a")
    assignment.policy.overprovisioning_factor.value = version
    cache.publish({GroupKey("g"): Snapshot.of((encode(assignment),))}, {NodeKey("n"): GroupKey("g")})


async def _three(served: Any, connect: Connect) -> list[Any]:
    """Open three streams, one after another, each of which has its first response."""
    _publish(served.cache, 1)
    clients = []
    for _ in range(3):
        clients.append(connect(served.port))
        await clients[-1].ask(ENDPOINT, "a")
        await clients[-1].response()
    return clients


async def test_oldest_streams_end_in_order_and_the_others_are_served(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """Two streams end with OK, the third one gets the next change, and the server takes new ones."""
    served = await serve()
    clients = await _three(served, connect)

    assert served.server.end_oldest(2, 0.0) == 2
    assert [await client.status() for client in clients[:2]] == [(OK, "")] * 2
    await eventually(lambda: served.server.streams == 1)
    assert served.seen.endings == [(StreamEnd.MOVED, "")] * 2

    again = connect(served.port)
    await again.ask(ENDPOINT, "a")
    await again.response()
    _publish(served.cache, 2)
    assert [len((await client.response()).resources) for client in (clients[2], again)] == [1, 1]


async def test_young_streams_go_on(serve: Serve, connect: Connect) -> None:
    """A client that has just connected is not moved, so that no client is moved again and again."""
    served = await serve()
    clients = await _three(served, connect)

    assert served.server.end_oldest(3, MINUTE) == 0
    _publish(served.cache, 2)
    assert [len((await client.response()).resources) for client in clients] == [1, 1, 1]
    assert served.server.streams == 3


async def test_stream_that_ends_already_is_not_ended_twice(serve: Serve, connect: Connect) -> None:
    """The next call ends other streams, and never more than there are."""
    served = await serve()
    clients = await _three(served, connect)

    assert [served.server.end_oldest(count, 0.0) for count in (1, 1, 5, 1)] == [1, 1, 1, 0]
    assert [await client.status() for client in clients] == [(OK, "")] * 3


class Refusing(AnyNode):
    """Authenticates every client as one node, until `refuses` is set; counts the checks."""

    refuses = False
    checks = 0

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the node, or refuse the client."""
        self.checks += 1
        if self.refuses:
            raise StreamRefused("revoked")
        return super().authenticate(peer)


async def test_revocation_is_checked_at_the_clients_of_its_node_alone(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """Other clients are not authenticated again for it; a check of all concerns each."""
    refusing = Refusing(NodeKey("n"))
    served = await serve(refusing)
    await _three(served, connect)
    before = refusing.checks

    refusing.refuses = True
    served.server.recheck({NodeKey("other")})
    assert (refusing.checks, served.server.streams) == (before, 3)
    served.server.recheck({NodeKey("other"), NodeKey("n")})
    assert refusing.checks == before + 3
    await eventually(lambda: not served.server.streams)
    assert served.seen.endings == [(StreamEnd.REFUSED, "revoked")] * 3
