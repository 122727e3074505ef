"""gRPC wakes the event loop once for all of its events that are there."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import grpc.aio
import pytest

from xds.cache import NodeKey, SnapshotCache
from xds.hooks import AnyNode
from xds.server.ads import AdsServer
from xds.server.streams import wakeups
from xds.server.streams.wakeups import AT_ONCE, once_for_all
from xds.server.tls import Plaintext


@contextlib.contextmanager
def _listening(found: list[int]) -> Iterator[socket.socket]:
    """Have a callback listen as gRPC's does, which takes one byte; yield where its thread writes."""
    loop = asyncio.get_running_loop()
    read, write = socket.socketpair()
    with read, write:
        read.setblocking(False)
        with once_for_all(loop):
            loop.add_reader(read, lambda: found.append(len(read.recv(1))))
        yield write
        loop.remove_reader(read)


@pytest.mark.parametrize("events", [1, 2, 100, AT_ONCE])
async def test_many_events_are_one_wake_up(events: int) -> None:
    """Whoever is called finds the byte that it waits for, and is not called again for nothing."""
    found = list[int]()
    with _listening(found) as write:
        write.sendall(b"1" * events)
        for _ in range(3):
            await asyncio.sleep(0)
        assert found == [1]


async def test_what_happens_later_is_a_wake_up_of_its_own() -> None:
    """Also where more are there than are taken together."""
    found = list[int]()
    with _listening(found) as write:
        write.sendall(b"1" * (AT_ONCE + 2))
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(found) == 2
        write.sendall(b"1")
        for _ in range(2):
            await asyncio.sleep(0)
        assert len(found) == 3


async def test_who_fails_at_one_event_is_called_again_for_the_others() -> None:
    """As gRPC does at an event of a loop that is closed by then, in the midst of all that are there."""
    loop, found, events = asyncio.get_running_loop(), list[int](), [1, 0, 2, 3]
    loop.set_exception_handler(lambda *_: None)
    read, write = socket.socketpair()

    def take() -> None:
        read.recv(1)
        while events:
            found.append(6 // events.pop(0))

    with read, write:
        read.setblocking(False)
        with once_for_all(loop):
            loop.add_reader(read, take)
        write.sendall(b"1" * len(events))
        for _ in range(5):
            await asyncio.sleep(0)
        loop.remove_reader(read)
    assert found == [6, 3, 2]


async def test_grpc_is_listened_to_that_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says to the loop what to call, which is where it is found."""
    called = list[object]()
    gathered = wakeups._gathered

    def counted(*args: Any) -> None:
        called.append(args)
        gathered(*args)

    monkeypatch.setattr(wakeups, "_gathered", counted)
    server = AdsServer(SnapshotCache(), AnyNode(NodeKey("n")), Plaintext.ON_LOOPBACK)
    port = await server.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await channel.unary_unary("/grpc.health.v1.Health/Check")(b"")
    await server.stop(0)
    assert called
    assert "add_reader" not in vars(asyncio.get_running_loop())
