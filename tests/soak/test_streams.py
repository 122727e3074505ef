"""Tests of the server's cost of cancelled streams, of a client that does not read, and of pings.

`make test` runs the short form; MESHWRIGHT_SOAK=long is the full form (`make soak-streams`).
"""

import asyncio
import itertools
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import grpc
import grpc.aio
import pytest

from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.tools.deadline import until
from xds.protocol.resources.resource import ENDPOINT
from xds.server.ads import SERVICE

LONG = os.environ.get("MESHWRIGHT_SOAK") == "long"
FEW = 3_000
STREAMS = 100_000 if LONG else FEW
IDLE = 60.0 if LONG else 10.0
UPDATES = 1000
MB = 1024 * 1024
PARTS = 10
LEAK = 200
"""Bytes that a stream may leave behind in the long form: 20 MB for a hundred thousand of them."""
CONTROL_LEAK = 5000
"""Bytes that the server which leaks on purpose keeps of each stream."""
SLACK = 10 * MB
"""What allocators may take now and then, however few streams there were."""

Call = Any
"""A grpc.aio.StreamStreamCall; grpc has no types."""


@dataclass
class Server:
    """The server's process, and the files that a client needs."""

    process: asyncio.subprocess.Process
    port: int
    folder: Path

    @property
    def resident(self) -> int:
        """The resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    async def publish(self) -> int:
        """Publish another edition; return the number of streams."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"\n")
        async with asyncio.timeout(60):
            return int(await self.process.stdout.readline())

    def channel(self, *options: tuple[str, int | str]) -> grpc.aio.Channel:
        """Return a new connection's channel."""
        credentials = grpc.ssl_channel_credentials(
            (self.folder / "roots.pem").read_bytes(),
            (self.folder / "client.key").read_bytes(),
            (self.folder / "client.pem").read_bytes(),
        )
        own = (("grpc.ssl_target_name_override", "ads.cluster.local"), ("grpc.use_local_subchannel_pool", 1))
        return grpc.aio.secure_channel(f"127.0.0.1:{self.port}", credentials, (*own, *options))


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """End the programs that a test started."""
    async with AsyncExitStack() as stack:
        yield stack


async def start(folder: Path, size: int, ends: AsyncExitStack, leak: int = 0) -> Server:
    """Start a server that ends with the exit stack; with `leak` it keeps this many bytes of each stream."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("server.py")),
        str(folder),
        str(size),
        str(leak),
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )

    async def end() -> None:
        if process.returncode is None:
            process.kill()
        await process.communicate()

    ends.push_async_callback(end)
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return Server(process, int(await process.stdout.readline()), folder)


def stream(channel: grpc.aio.Channel) -> Call:
    """Open a stream."""
    return channel.stream_stream(f"/{SERVICE}/StreamAggregatedResources")()


async def ask(call: Call, nonce: str = "") -> None:
    """Request the endpoints, or acknowledge them."""
    request = discovery_pb2.DiscoveryRequest(
        type_url=ENDPOINT, resource_names=["one"], node={"id": "n"}, response_nonce=nonce
    )
    await call.write(request.SerializeToString())


async def answer(call: Call) -> discovery_pb2.DiscoveryResponse:
    """Wait for a response."""
    async with asyncio.timeout(60):
        data = await call.read()
    assert data is not grpc.aio.EOF, await call.code()
    return discovery_pb2.DiscoveryResponse.FromString(data)


async def cancel_streams(channels: list[grpc.aio.Channel], count: int) -> None:
    """Open `count` streams; cancel each after its first response, or at once, in turn."""
    left = iter(range(count))

    async def worker(channel: grpc.aio.Channel) -> None:
        for number in left:
            call = stream(channel)
            await ask(call)
            if number % 2:
                await answer(call)
            call.cancel()

    await asyncio.gather(*(worker(channel) for channel in channels for _ in range(8)))


async def growth(server: Server, channels: list[grpc.aio.Channel], streams: int) -> int:
    """Return the median growth of a server's memory in bytes, over equal parts of cancelled streams.

    Allocators take memory in steps, and a leak grows continuously: the median distinguishes them. Each part
    is measured when the server has ended its last stream, because a busy server ends streams later.
    """

    async def none_is_left() -> bool:
        return await server.publish() == 0

    begun, sizes = time.monotonic(), [server.resident]
    for part in range(PARTS):
        await cancel_streams(channels, streams // PARTS)
        await until(none_is_left)
        sizes.append(server.resident)
        sys.stderr.write(
            f"\n{(part + 1) * streams // PARTS} streams, {(sizes[-1] - sizes[0]) / MB:+.1f} MB,"
            f" {time.monotonic() - begun:.0f} s"
        )
    return int(median(after - before for before, after in itertools.pairwise(sizes)))


@pytest.mark.timeout(1200)
async def test_s10_cancelled_streams_leave_no_memory_behind(tmp_path: Path, ends: AsyncExitStack) -> None:
    """A server with a small leak for each stream grows at least four times as fast as ours.

    The long form also has a bound in bytes, for which a few thousand streams are too few.
    """
    grown = {}
    for leak in (0, CONTROL_LEAK):
        folder = tmp_path / str(leak)
        folder.mkdir()
        server = await start(folder, 10_000, ends, leak)
        channels = [await ends.enter_async_context(server.channel()) for _ in range(4)]
        await cancel_streams(channels, FEW // 2)
        before = server.resident
        streams = FEW if leak else STREAMS
        grown[leak] = await growth(server, channels, streams) / streams * PARTS
        if LONG and not leak:
            assert grown[0] < LEAK
            assert server.resident - before < LEAK * STREAMS + SLACK
    assert grown[CONTROL_LEAK] > CONTROL_LEAK / 2
    assert grown[0] * 4 < grown[CONTROL_LEAK], f"bytes for each stream: {grown}"


async def test_n8_client_that_does_not_read_costs_no_memory(tmp_path: Path, ends: AsyncExitStack) -> None:
    """A thousand updates are published: memory is flat, and the client that reads gets each of them."""
    server = await start(tmp_path, 200_000, ends)
    deaf = stream(await ends.enter_async_context(server.channel()))
    await ask(deaf)
    quick = stream(await ends.enter_async_context(server.channel()))
    await ask(quick)
    await ask(quick, (await answer(quick)).nonce)
    before, delays = 0, []
    for number in range(UPDATES + 200):
        if number == 200:  # the bytes shared between streams, and the deaf one's window, are full by now
            before = server.resident
        begun = time.monotonic()
        assert await server.publish() == 2
        response = await answer(quick)
        delays.append(time.monotonic() - begun)
        await ask(quick, response.nonce)

    delays.sort()
    grown = server.resident - before
    sys.stderr.write(
        f"\n{UPDATES} updates of 200 kB: {grown / MB:+.1f} MB;"
        f" p50 {delays[len(delays) // 2] * 1000:.1f} ms, max {delays[-1] * 1000:.1f} ms"
    )
    assert grown < 8 * MB
    deaf.cancel()


async def test_s14_idle_streams_whose_client_pings_stay_open(tmp_path: Path, ends: AsyncExitStack) -> None:
    """The client sends only a ping each second.

    A server with gRPC's default options disconnects the same client.
    """
    server = await start(tmp_path, 10, ends)
    pings = (
        ("grpc.keepalive_time_ms", 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    )
    call = stream(await ends.enter_async_context(server.channel(*pings)))
    await ask(call)
    await ask(call, (await answer(call)).nonce)
    begun = time.monotonic()
    strict = await idle_on_a_default_server(pings, ends)
    assert await asyncio.wait_for(strict.code(), 60) is grpc.StatusCode.UNAVAILABLE
    assert "too_many_pings" in str(await strict.details()).lower().replace(" ", "_")
    await until(lambda: time.monotonic() - begun > IDLE, IDLE + 10)

    assert not call.done()
    await server.publish()
    assert len((await answer(call)).resources) == 1


async def idle_on_a_default_server(options: tuple[tuple[str, int], ...], ends: AsyncExitStack) -> Call:
    """Open an idle stream on a server with gRPC's default options."""

    async def idle(requests: object, context: grpc.aio.ServicerContext) -> None:
        await context.send_initial_metadata(())
        await context.read()

    server = grpc.aio.server()
    method = grpc.stream_stream_rpc_method_handler(idle)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("idle.Idle", {"Idle": method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ends.push_async_callback(server.stop, 0)
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options)
    await ends.enter_async_context(channel)
    call = channel.stream_stream("/idle.Idle/Idle")()
    await call.wait_for_connection()
    return call
