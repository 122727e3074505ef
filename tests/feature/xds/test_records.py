"""TLS records: what a connection keeps ready for the longest of them is held as long as it stands."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from protos.envoy.config.cluster.v3 import cluster_pb2
from xds.cache import GroupKey, NodeKey
from xds.protocol.resource import CLUSTER, encode
from xds.protocol.snapshot import Snapshot

LONGEST = 4096
"""Bytes of a record with what TLS adds: gRPC's own are 16 KiB, which it keeps ready twice."""


async def records(stream: asyncio.StreamReader, found: list[int], to: asyncio.StreamWriter) -> None:
    """Hand TLS records on, and note how long those with application data are."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            header = await stream.readexactly(5)
            body = await stream.readexactly(int.from_bytes(header[3:]))
            if header[0] == 23:
                found.append(len(body))
            to.write(header + body)
            await to.drain()
    to.close()


async def test_a_response_goes_out_in_short_records(
    serve: Callable[..., Awaitable[Any]], connect: Callable[..., Any]
) -> None:
    """However long it is, and it arrives whole."""
    served, found, requests = await serve(), list[int](), list[int]()
    large = encode(cluster_pb2.Cluster(name="a", alt_stat_name="x" * 1_000_000))
    served.cache.publish({GroupKey("g"): Snapshot.of([large])}, {NodeKey("n"): GroupKey("g")})

    ends: list[asyncio.StreamWriter] = []

    async def forward(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        server, out = await asyncio.open_connection("127.0.0.1", served.port)
        ends.extend((out, back))
        await asyncio.gather(records(server, found, back), records(client, requests, out))

    async with asyncio.timeout(30), await asyncio.start_server(forward, "127.0.0.1", 0) as between:
        client = connect(between.sockets[0].getsockname()[1])
        await client.ask(CLUSTER)
        response = await client.response()
        await client.channel.close()
        for each in ends:
            each.close()
            await each.wait_closed()

    assert response.resources[0].SerializeToString() == large.body
    assert max(found) <= LONGEST
    assert sum(found) > 1_000_000
