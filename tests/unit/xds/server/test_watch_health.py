"""Tests of the end of a watch of the server's health."""

import asyncio

from tests.unit.xds.server.transports import Client
from xds.budget import Account
from xds.cache import NodeKey
from xds.hooks import Peer, StreamEnd
from xds.limits import Limits
from xds.server.auxiliary import watch_health
from xds.server.streams.call import Call


async def test_watch_without_a_request_ends_when_it_must() -> None:
    """A client that has sent nothing yet is no reason to wait at the shutdown, or beyond its time."""
    client, call = Client(), Call(1, NodeKey("n"), Peer(None), Account(Limits()), {})
    serving = asyncio.create_task(call.run(watch_health(call, client)))
    await asyncio.sleep(0)
    call.leave(StreamEnd.AGED)
    async with asyncio.timeout(1):
        assert await serving == (StreamEnd.AGED, "")
