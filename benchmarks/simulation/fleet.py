"""Servers and proxies of a simulated mesh. A proxy connects to a random server for each stream."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Final

from benchmarks.simulation.mesh import SimulatedMesh
from benchmarks.simulation.proxies import Proxy
from benchmarks.simulation.server import SimulatedServer, now
from benchmarks.simulation.store import Store
from certs.errors import StateError
from meshwright.records.contract import RecordsError

SMALLEST_PAUSE: Final = 0.5
LARGEST_PAUSE: Final = 5.0
"""Seconds until a proxy connects again: Envoy begins with half a second, and doubles the pause."""
BOOT_SECONDS: Final = 1.0
"""Seconds from a new certificate until its Envoy connects, perhaps to another server."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a simulation: servers, and services with so many proxies each."""

    servers: int
    services: int
    replicas: int = 3

    @property
    def proxies(self) -> int:
        """Return the number of proxies."""
        return self.services * self.replicas


class Fleet:
    """All servers and proxies, with the counted events since the last `forget`.

    `lost_share` is the part of the writes whose answer is lost. `fullest` is the largest number of streams of
    a server, as a multiple of the mean.
    """

    def __init__(self, size: Size, seed: int, lost_share: float = 0.0) -> None:
        self.size = size
        self.random = random.Random(seed)
        self.store = Store(seed, lost_share=lost_share)
        self.mesh = SimulatedMesh(size.services)
        self.counts = Counter[str]()
        self.servers: list[SimulatedServer] = []
        self.pods: dict[int, Proxy] = {}
        self.fullest = 0.0
        self.busiest: Counter[str] = Counter()
        """Largest number of store operations in one second, by kind."""
        self._started = self._numbers = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def start_server(self) -> SimulatedServer:
        """Start a server, and wait until it is ready."""
        self._started += 1
        server = SimulatedServer(f"server-{self._started:03}", self.store, self.mesh, self.counts)
        server.streams.left = self._come_back
        self.servers.append(server)
        await server.start(self.pods.values())
        return server

    def kill(self, server: SimulatedServer) -> None:
        """End a server at once."""
        self.servers.remove(server)
        for proxy in server.kill():
            self._come_back(proxy)

    async def stop(self, server: SimulatedServer) -> None:
        """End a server in steps."""
        await server.stop()
        self.servers.remove(server)

    def add_pod(self, service: int, joined: Callable[[], None] = lambda: None) -> Proxy:
        """Start a Pod, whose proxy joins and connects; `joined` is called when the proxy is served."""
        self._numbers += 1
        proxy = self.pods[self._numbers] = Proxy(self._numbers, service)
        for server in self.servers:
            server.add(proxy)
        self._spawn(self._connect(proxy, 0.0, joined))
        return proxy

    def end_pod(self, proxy: Proxy) -> None:
        """End a Pod."""
        proxy.is_gone = True
        del self.pods[proxy.number]
        for server in self.servers:
            server.drop(proxy)
            server.streams.end(proxy)

    def reconnect(self, proxy: Proxy) -> None:
        """End the stream of a proxy, as by its age."""
        for server in self.servers:
            if server.streams.end(proxy):
                self._come_back(proxy)

    @property
    def is_agreed(self) -> bool:
        """Return whether all servers let the same Pods get calls, and these are all Pods."""
        every = set(self.pods)
        return all(server.ready_pods() == every for server in self.servers)

    def forget(self) -> None:
        """Count anew."""
        self.counts.clear()
        self.store.counts.clear()
        self.busiest.clear()
        self.fullest = 0.0
        for server in self.servers:
            server.told.clear()

    async def watch(self) -> None:
        """Note each second how full servers are, and how busy the store is, until cancelled."""
        before = Counter(self.store.counts)
        while True:
            await asyncio.sleep(1.0)
            for kind, count in self.store.counts.items():
                self.busiest[kind] = max(self.busiest[kind], count - before[kind])
            before = Counter(self.store.counts)
            streams = [server.streams.streams for server in self.servers]
            self.fullest = max(self.fullest, max(streams) * self.size.servers / self.size.proxies)

    async def settled(self, seconds: float) -> None:
        """Wait until all proxies are connected, and for some seconds more."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.sleep(seconds)

    def _come_back(self, proxy: Proxy) -> None:
        self._spawn(self._connect(proxy, SMALLEST_PAUSE * self.random.random(), lambda: None))

    async def _connect(self, proxy: Proxy, pause: float, joined: Callable[[], None]) -> None:
        await asyncio.sleep(pause)
        pause = SMALLEST_PAUSE
        while not proxy.is_gone:
            server = self._ready_server()
            if server is not None and await self._joined(proxy, server):
                server = self._ready_server()
                if server is not None and await server.let_in(proxy):
                    joined()
                    return
            self.counts["refused"] += 1
            await asyncio.sleep(pause * (0.5 + self.random.random()))
            # Envoy's backoff, which spreads the proxies over time after an outage of the store.
            pause = min(LARGEST_PAUSE, 2 * pause)

    def _ready_server(self) -> SimulatedServer | None:
        ready = [server for server in self.servers if server.is_ready]
        return self.random.choice(ready) if ready else None

    async def _joined(self, proxy: Proxy, server: SimulatedServer) -> bool:
        if not proxy.has_certificate:
            try:
                await server.ledger.join(proxy.certificate(now()))
            except (StateError, RecordsError):
                return False
            proxy.has_certificate = True
            await asyncio.sleep(BOOT_SECONDS)
        return True

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
