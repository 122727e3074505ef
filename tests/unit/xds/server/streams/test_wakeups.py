"""Tests of the gathering of gRPC's wake-ups: one callback of the event loop for all pending events."""

import asyncio
import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
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
    """Register a callback that takes one byte, as gRPC's does; yield the socket of the writing thread."""
    loop = asyncio.get_running_loop()
    read, write = socket.socketpair()
    with read, write:
        read.setblocking(False)
        with once_for_all(loop):
            loop.add_reader(read, lambda: found.append(len(read.recv(1))))
        yield write
        loop.remove_reader(read)


@pytest.mark.parametrize("events", [1, 2, 100, AT_ONCE])
async def test_many_pending_events_cause_one_wake_up(events: int) -> None:
    """The callback finds the byte that it expects, and is not called again without a reason."""
    result = list[int]()
    with _listening(result) as write:
        write.sendall(b"1" * events)
        for _ in range(3):
            await asyncio.sleep(0)
        assert result == [1]


async def test_later_events_cause_another_wake_up() -> None:
    """This is also true for pending events beyond the AT_ONCE that one wake-up takes."""
    result = list[int]()
    with _listening(result) as write:
        write.sendall(b"1" * (AT_ONCE + 2))
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(result) == 2
        write.sendall(b"1")
        for _ in range(2):
            await asyncio.sleep(0)
        assert len(result) == 3


async def test_callback_that_fails_is_called_again_for_the_remaining_events() -> None:
    """A callback of gRPC fails at an event of a closed loop. The other pending events must not be lost."""
    loop, result, events = asyncio.get_running_loop(), list[int](), [1, 0, 2, 3]
    loop.set_exception_handler(lambda *_: None)
    read, write = socket.socketpair()

    def take() -> None:
        read.recv(1)
        while events:
            result.append(6 // events.pop(0))

    with read, write:
        read.setblocking(False)
        with once_for_all(loop):
            loop.add_reader(read, take)
        write.sendall(b"1" * len(events))
        for _ in range(5):
            await asyncio.sleep(0)
        loop.remove_reader(read)
    assert result == [6, 3, 2]


@pytest.mark.parametrize("events", [3, 50])
def test_two_event_loops_lose_no_event_of_each_other(events: int) -> None:
    """All loops of a process share one socket of gRPC, for example with a store of records in etcd.

    An event comes while the first loop is between its callback and the removal of bytes, after the second
    loop has read a byte.
    """
    waiting, done = deque[int](), list[int]()
    between, elsewhere, written = threading.Event(), threading.Event(), threading.Event()
    read, write = socket.socketpair()

    def handle_all() -> None:
        read.recv(1)
        while waiting:
            done.append(waiting.popleft())

    def here() -> None:
        handle_all()
        if not between.is_set():
            between.set()
            elsewhere.wait(0.1)  # in vain, if the second loop waits for the first one
            waiting.append(events)
            write.send(b"1")

    def there() -> None:
        handle_all()
        if not elsewhere.is_set():
            elsewhere.set()
            written.wait(0.1)

    async def reads(callback: Callable[[], None], begin: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(begin.wait)
        with once_for_all(loop):
            loop.add_reader(read, callback)
        while len(done) <= events:
            await asyncio.sleep(0.001)
        written.set()
        loop.remove_reader(read)

    with read, write:
        read.setblocking(False)
        waiting.extend(range(events))
        write.send(b"1" * events)
        begun = threading.Event()
        begun.set()
        second = threading.Thread(target=lambda: asyncio.run(asyncio.wait_for(reads(there, between), 5)))
        second.start()
        asyncio.run(asyncio.wait_for(reads(here, begun), 5))
        second.join()
    assert done == list(range(events + 1))


async def test_grpc_wake_ups_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server replaces gRPC's reader of the event loop only during registration."""
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
