"""A program: an attacking proxy that requests as much as possible, with gRPC's own client.

`python requesters.py KIND PORT FOLDER NAME COUNT SECONDS` uses NAME.pem and NAME.key of the folder, on COUNT
concurrent streams for SECONDS, or until its input ends and it has sent something. A stream that ends is
opened again. It prints the number of bytes handed to gRPC, and how its streams ended.
"""

import asyncio
import contextlib
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2

from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.discovery import AGGREGATED, CLIENT_STATUS, HEALTH
from xds.protocol.resources.resource import CLUSTER, ENDPOINT

DELTA: Final = f"/{AGGREGATED}/DeltaAggregatedResources"
SOTW: Final = f"/{AGGREGATED}/StreamAggregatedResources"
OTHER: Final = "type.googleapis.com/other."
ENDED: Final = (grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError)
CONNECTIONS: Final = 4

Requests = Callable[[int], Iterator[bytes]]
"""From the number of a stream to what it sends, perhaps without end."""


def names(tag: object, count: int, length: int) -> list[str]:
    """Return `count` different names with `length` characters."""
    return [f"{tag}.{n:08}".ljust(length, "x") for n in range(count)]


class Attacks:
    """The requests of each kind of attack; the node is the attacker's own."""

    def __init__(self, node: str) -> None:
        self._node = {"id": node}
        self.kinds: dict[str, tuple[str, Requests]] = {
            "too-large": (DELTA, lambda _: self._there_and_back(99_000, 95)),
            "large": (DELTA, lambda _: self._there_and_back(40_000, 88)),
            "large-sotw": (SOTW, lambda _: self._alternating(40_000, 88)),
            "names": (DELTA, lambda stream: self._many_types(stream, 25, 4000)),
            "types": (DELTA, self._long_types),
            "churn": (DELTA, lambda stream: self._ever_others(stream, 30_000)),
            "held": (DELTA, self._holding),
            "tiny": (DELTA, lambda _: self._tiny()),
            "health": (f"/{HEALTH}/Watch", self._long_services),
            "client-status": (f"/{CLIENT_STATUS}/StreamClientStatus", lambda _: itertools.repeat(b"")),
            "small": (DELTA, lambda _: self._small()),
        }

    def _delta(self, type_url: str = ENDPOINT, **fields: Any) -> bytes:
        return discovery_pb2.DeltaDiscoveryRequest(
            type_url=type_url, node=self._node, **fields
        ).SerializeToString()

    def _there_and_back(self, count: int, length: int) -> Iterator[bytes]:
        both = [names(tag, count, length) for tag in "ab"]
        subscribing = [self._delta(resource_names_subscribe=item) for item in both]
        unsubscribing = [self._delta(resource_names_unsubscribe=item) for item in both]
        yield from itertools.cycle((subscribing[0], unsubscribing[0], subscribing[1], unsubscribing[1]))

    def _alternating(self, count: int, length: int) -> Iterator[bytes]:
        yield from itertools.cycle(
            discovery_pb2.DiscoveryRequest(
                type_url=ENDPOINT, node=self._node, resource_names=names(tag, count, length)
            ).SerializeToString()
            for tag in "ab"
        )

    def _many_types(self, stream: int, batches: int, count: int) -> Iterator[bytes]:
        for number, batch in itertools.product(range(60), range(batches)):
            wanted = names(f"{stream}.{number}.{batch}", count, 60)
            yield self._delta(f"{OTHER}{number}", resource_names_subscribe=wanted)

    def _long_types(self, stream: int) -> Iterator[bytes]:
        for number in range(60):
            yield self._delta(f"{OTHER}{stream}.{number}" + "y" * 3_000_000, resource_names_subscribe=["a"])

    def _ever_others(self, stream: int, count: int) -> Iterator[bytes]:
        for number in itertools.count():
            wanted = names(f"{stream}.{number}", count, 60)
            yield self._delta(resource_names_subscribe=wanted)
            yield self._delta(resource_names_unsubscribe=wanted)

    def _holding(self, stream: int) -> Iterator[bytes]:
        for type_url in (CLUSTER, *(f"{OTHER}{n}" for n in range(50))):
            held = {name: name[::-1] for name in names(f"{stream}.{type_url[-4:]}", 15_000, 60)}
            yield self._delta(type_url, resource_names_subscribe=["*"], initial_resource_versions=held)

    def _tiny(self) -> Iterator[bytes]:
        empty = self._delta() + b"\x1a\x00" * 1_900_000
        pairs = (bytes((33 + n % 90, 33 + n // 90 % 90)) for n in range(900_000))
        yield from itertools.cycle((empty, self._delta() + b"".join(b"\x1a\x02" + pair for pair in pairs)))

    def _long_services(self, stream: int) -> Iterator[bytes]:
        yield health_pb2.HealthCheckRequest(service=f"{stream}" + "z" * 60_000).SerializeToString()

    def _small(self) -> Iterator[bytes]:
        for number in itertools.count():
            yield self._delta(resource_names_subscribe=[f"n{number % 50}"])


class Attacker:
    """Streams on a few connections, until the attack ends."""

    def __init__(self, port: int, folder: Path, name: str) -> None:
        shown = [(folder / item).read_bytes() for item in ("roots.pem", f"{name}.key", f"{name}.pem")]
        credentials = grpc.ssl_channel_credentials(*shown)
        own = (
            ("grpc.ssl_target_name_override", "ads.cluster.local"),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_reconnect_backoff_ms", 200),
        )
        self._channels = [
            grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, own) for _ in range(CONNECTIONS)
        ]
        self.sent = 0
        self.begun = asyncio.Event()
        self.endings: Counter[str] = Counter()

    async def told(self) -> None:
        """Wait until something was sent and the input has ended."""
        await self.begun.wait()
        await asyncio.to_thread(sys.stdin.read)

    async def run(self, method: str, requests: Requests, stream: int) -> None:
        """Send all requests on a stream and wait; open another stream when it ends."""
        while True:
            call = self._channels[stream % CONNECTIONS].stream_stream(method)()
            reading = asyncio.create_task(_read(call), name="reading")
            try:
                for request in requests(stream):
                    await call.write(request)
                    self.sent += len(request)
                    self.begun.set()
                await call.code()
            except ENDED:
                self.endings[(await call.code()).name] += 1
                await asyncio.sleep(0.02)
            finally:
                reading.cancel()
                call.cancel()


async def _read(call: Any) -> None:
    with contextlib.suppress(*ENDED):
        while await call.read() is not grpc.aio.EOF:
            continue


async def main(kind: str, port: int, folder: Path, name: str, count: int, seconds: float) -> None:
    """Attack, and print the counts."""
    attacker, (method, requests) = Attacker(port, folder, name), Attacks(name).kinds[kind]
    streams = [asyncio.create_task(attacker.run(method, requests, n), name=str(n)) for n in range(count)]
    enough = asyncio.create_task(attacker.told(), name="told to end")
    done, _ = await asyncio.wait([*streams, enough], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    sys.stdout.write(json.dumps({"sent": attacker.sent, **attacker.endings}))
    sys.stdout.flush()
    os._exit(0)  # at once, with all that gRPC still has to send


if __name__ == "__main__":
    asyncio.run(
        main(
            sys.argv[1],
            int(sys.argv[2]),
            Path(sys.argv[3]),
            sys.argv[4],
            int(sys.argv[5]),
            float(sys.argv[6]),
        )
    )
