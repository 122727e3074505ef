"""Tests of a server that stops while others serve the same clients: its streams end one after another."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest

from protos.envoy.config.endpoint.v3 import endpoint_pb2
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import AnyNode, Peer, StreamEnd, StreamRefused
from xds.protocol.resources.resource import ENDPOINT, Resource, encode
from xds.protocol.resources.snapshot import Snapshot

Serve = Callable[..., Awaitable[Any]]
Connect = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], Awaitable[None]]

OK = grpc.StatusCode.OK
ENDED = 30.0
HOURS = 3 * 3600.0
"""A spread in which only the first of three streams ends during a test."""


class Admitting(AnyNode):
    """Authenticates every client as one node, until `refuses` is set."""

    refuses = False

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the node, or refuse the client."""
        if self.refuses:
            raise StreamRefused("revoked")
        return super().authenticate(peer)


def _publish(cache: SnapshotCache, version: int) -> None:
    cache.publish({GroupKey("g"): Snapshot.of((_endpoints(version),))}, {NodeKey("n"): GroupKey("g")})


def _endpoints(version: int) -> Resource:
    assignment = endpoint_pb2.ClusterLoadAssignment(cluster_name="a")
    assignment.policy.overprovisioning_factor.value = version
    return encode(assignment)


async def _three(served: Any, connect: Connect) -> list[Any]:
    """Open three streams, one after another, each of which has its first response."""
    _publish(served.cache, 1)
    clients = []
    for _ in range(3):
        clients.append(connect(served.port))
        await clients[-1].ask(ENDPOINT, "a")
        await clients[-1].response()
    return clients


async def _cut(stopping: asyncio.Task[None], served: Any) -> None:
    """End the server as the driver does when it is cancelled in the middle of the spread."""
    stopping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await stopping
    await asyncio.wait_for(served.server.stop(0.0), ENDED)


async def test_s11_streams_end_one_after_another(serve: Serve, connect: Connect) -> None:
    """The oldest stream ends at once with OK; the others are served, and end when the server is cut."""
    served = await serve()
    first, second, third = await _three(served, connect)
    stopping = asyncio.create_task(served.server.stop(60.0, HOURS))

    assert await first.status() == (OK, "")
    _publish(served.cache, 2)
    assert [len((await client.response()).resources) for client in (second, third)] == [1, 1]
    assert (stopping.done(), served.server.calls) == (False, 2)
    assert served.seen.endings == [(StreamEnd.SHUTDOWN, "")]

    await _cut(stopping, served)
    assert served.server.calls == 0


async def test_s11_all_streams_have_ended_at_the_deadline(serve: Serve, connect: Connect) -> None:
    """Each stream ends with OK, in the order of their start, and the server with the last one."""
    served = await serve()
    ended = list[int]()
    clients = await _three(served, connect)
    for index, client in enumerate(clients):
        client.call.add_done_callback(lambda _, index=index: ended.append(index))

    await asyncio.wait_for(served.server.stop(60.0, 0.3), ENDED)

    assert [await client.status() for client in clients] == [(OK, "")] * 3
    assert served.seen.endings == [(StreamEnd.SHUTDOWN, "")] * 3
    assert ended == [0, 1, 2]


async def test_stopping_server_takes_no_new_stream(serve: Serve, connect: Connect) -> None:
    """A client whose stream has ended cannot come back to the same server, and so connects to another one."""
    served = await serve()
    clients = await _three(served, connect)
    stopping = asyncio.create_task(served.server.stop(60.0, HOURS))
    await clients[0].status()

    late = connect(served.port)
    await late.ask(ENDPOINT, "a")
    assert (await late.status())[0] is grpc.StatusCode.UNAVAILABLE
    assert served.server.calls == 2
    await _cut(stopping, served)


async def test_revocation_ends_a_stream_of_a_stopping_server(
    serve: Serve, connect: Connect, eventually: Eventually
) -> None:
    """Authentication is repeated until the end, so that the spread gives no time to a revoked client."""
    admitting = Admitting(NodeKey("n"))
    served = await serve(admitting)
    clients = await _three(served, connect)
    stopping = asyncio.create_task(served.server.stop(60.0, HOURS))
    await clients[0].status()

    admitting.refuses = True
    served.server.recheck()
    await eventually(lambda: not served.server.calls)
    await asyncio.wait_for(stopping, ENDED)
    assert served.seen.endings[1:] == [(StreamEnd.REFUSED, "revoked")] * 2


@pytest.mark.parametrize("spread", [0.0, HOURS])
async def test_server_without_streams_ends_at_once(serve: Serve, spread: float) -> None:
    """The spread delays nothing if there is nothing to end."""
    served = await serve()
    await asyncio.wait_for(served.server.stop(60.0, spread), ENDED)
    assert served.server.calls == 0
