"""The real program with honest clients, seen from outside during an attack."""

import asyncio
import contextlib
import json
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio

from certs.contract import Names, Usage
from certs.custody import LEDGER_FILE
from certs.keys.pair import Pair, issue_pair
from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from tests.meshes import texts
from tests.tools.own_authority import own_authority
from xds.protocol.resources.resource import CLUSTER

ROOT = Path(__file__).parents[2]
ATTACKERS = Path(__file__).with_name("attackers.py")
METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
CLUSTER_NAME = "shop/store|18080|local"
LIMITED = 'ulimit -S -n "$0" && ulimit -H -n "$1" && shift && exec "$@"'
"""A limit that Python sets between fork and exec is set in a child of gRPC's threads, which may die of it."""
SECONDS = 30.0
"""How long anything may take here before it is taken for broken."""
STARTING_SECONDS = 60.0
"""How long it may take to begin: with six others on two processors it takes nine."""
PROXIES = ("one", "two", "three", "bad")


@dataclass
class Program:
    """`meshwright serve` in a separate process, with certificates of its proxies in a folder."""

    folder: Path
    process: Process
    port: int
    http: str
    log: Path

    @property
    def resident(self) -> int:
        """The resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]) * 1024

    @property
    def descriptors(self) -> int:
        """The number of open files."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    @property
    def lines(self) -> int:
        """The number of lines in the log."""
        return self.log.read_bytes().count(b"\n")

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the lines about an event."""
        result = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [item for item in result if item["event"] == event]

    async def get(self, path: str) -> tuple[int, str]:
        """Send an HTTP request on a new connection."""
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        session = aiohttp.ClientSession(f"http://{self.http}", timeout=timeout)
        async with session, session.get(path) as response:
            return response.status, await response.text()

    async def ended(self) -> dict[str, float]:
        """Return the number of ended connections by cause."""
        _, text = await self.get("/metrics")
        start = "meshwright_xds_connections_ended_total{"
        lines = (line for line in text.splitlines() if line.startswith(start))
        return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines}

    async def attack(
        self,
        kind: str,
        count: int,
        seconds: float,
        name: str = "service",
        port: int = 0,
        program: Path = ATTACKERS,
        enough: asyncio.Event | None = None,
    ) -> dict[str, int]:
        """Run an attacker to its end; return its counts. Without `port` it attacks the ADS server.

        It ends after `seconds`, or when the event `enough` is set.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(program),
            *(kind, str(port or self.port), str(self.folder), name, str(count), str(seconds)),
            stdin=PIPE,
            stdout=PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        telling = asyncio.create_task(_tell(process.stdin, enough), name="telling") if enough else None
        try:
            out = await asyncio.wait_for(process.stdout.read(), seconds + SECONDS)
            await asyncio.wait_for(process.wait(), SECONDS)
        finally:
            if telling is not None:
                telling.cancel()
            if process.returncode is None:
                process.kill()
                await process.wait()
        return dict(json.loads(out))


@contextlib.asynccontextmanager
async def program(
    folder: Path, descriptors: tuple[int, int] = (1024, 4096), **settings: object
) -> AsyncIterator[Program]:
    """Start the program with a soft and a hard limit of descriptors, and any settings."""
    for item in ("mesh", "state"):
        (folder / item).mkdir(mode=0o700)
    (folder / "mesh" / "mesh.yaml").write_text(
        texts.joined(
            texts.service("store", texts.port(80, 18080)),
            *(_workload(host, name) for host, name in enumerate(PROXIES, 1)),
        )
    )
    _issue(folder)
    flags = {"mesh": str(folder / "mesh"), "state": str(folder / "state")}
    flags |= dict.fromkeys(("ads-address", "http-address", "debug-address"), "127.0.0.1:0")
    given = {f"MESHWRIGHT_{name.upper()}": str(value) for name, value in settings.items()}
    log = folder / "log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", LIMITED, *map(str, descriptors)),
            *(sys.executable, "-c", "from meshwright.cli.main import main; main()", "serve"),
            *(part for name, value in flags.items() for part in (f"--{name}", value)),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **given},
            stderr=errors,
        )
    try:
        yield await _serving(Program(folder, process, 0, "", log))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _tell(attacker: asyncio.StreamWriter, enough: asyncio.Event) -> None:
    await enough.wait()
    attacker.close()


def _workload(host: int, name: str) -> str:
    more = f"service: store, ports: [{{port: 18080, protocol: http}}], applicationAddress: 127.0.41.{host}"
    return texts.workload(name, f"127.0.40.{host}", app="store", account="store", spec=more)


async def _serving(program: Program) -> Program:
    limit = time.monotonic() + STARTING_SECONDS
    while not (answer := program.said("server started")):
        assert program.process.returncode is None, program.log.read_text()
        assert time.monotonic() < limit, f"it does not serve: {program.log.read_text()}"
        await asyncio.sleep(0.02)
    program.port = int(answer[0]["ads"].rpartition(":")[2])
    program.http = answer[0]["http"]
    return program


def _issue(folder: Path) -> None:
    now, hour = datetime.now(UTC), timedelta(hours=1)
    authority = own_authority(folder / "state", TrustDomain("cluster.local"), now)
    (folder / "roots.pem").write_bytes(authority.trust_bundle())
    uris = ("spiffe://cluster.local/ns/shop/sa/store",)
    pairs: dict[str, Pair] = {
        "service": issue_pair(authority, Usage.SERVICE, Names("service-1", uris=uris), hour, now)
    }
    with SqliteLedger.open(folder / "state" / LEDGER_FILE) as ledger:
        for name in PROXIES:
            issued = issue_proxy(authority, ledger, ProxyName.parse(f"{name}.store.shop"), hour, now)
            (folder / f"{name}.pem").write_bytes(issued.chain_pem)
            (folder / f"{name}.key").write_bytes(issued.key.reveal())
    for name, pair in pairs.items():
        (folder / f"{name}.pem").write_bytes(pair.chain_pem)
        (folder / f"{name}.key").write_bytes(pair.key.reveal())


@dataclass
class Proxy:
    """An honest client: one long-lived stream, and new streams on new connections; with their durations."""

    program: Program
    name: str
    answers: list[float] = field(default_factory=list)
    beginnings: list[float] = field(default_factory=list)

    async def run(self) -> None:
        """Send requests on one stream until cancelled; fail as soon as the stream fails."""
        async with self._stream() as stream:
            while True:
                begun = time.monotonic()
                await _say(stream, resource_names_subscribe=[CLUSTER_NAME])
                await _answer(stream)
                self.answers.append(time.monotonic() - begun)
                await asyncio.sleep(0.02)

    async def connect(self) -> None:
        """Open new connections and streams repeatedly, each until its first response."""
        while True:
            begun = time.monotonic()
            async with self._stream():
                self.beginnings.append(time.monotonic() - begun)
            await asyncio.sleep(0.1)

    @contextlib.asynccontextmanager
    async def _stream(self) -> AsyncIterator[Any]:
        names = ("roots.pem", f"{self.name}.key", f"{self.name}.pem")
        shown = [(self.program.folder / name).read_bytes() for name in names]
        credentials = grpc.ssl_channel_credentials(*shown)
        own = (("grpc.ssl_target_name_override", "ads.cluster.local"), ("grpc.use_local_subchannel_pool", 1))
        async with grpc.aio.secure_channel(f"127.0.0.1:{self.program.port}", credentials, own) as channel:
            stream = channel.stream_stream(METHOD)(wait_for_ready=True)
            await _say(stream, node=base_pb2.Node(id=self.name))
            await _answer(stream)
            yield stream
            stream.cancel()


async def _say(stream: Any, **fields: Any) -> None:
    request = discovery_pb2.DeltaDiscoveryRequest(type_url=CLUSTER, **fields)
    await stream.write(request.SerializeToString())


async def _answer(stream: Any) -> None:
    async with asyncio.timeout(SECONDS):
        data = await stream.read()
    assert data is not grpc.aio.EOF, await stream.code()
    response = discovery_pb2.DeltaDiscoveryResponse.FromString(data)
    assert [resource.name for resource in response.resources] == [CLUSTER_NAME]
    await _say(stream, response_nonce=response.nonce)


@dataclass
class Honest:
    """All honest clients during an attack."""

    proxies: list[Proxy]
    tasks: list[asyncio.Task[None]]

    @classmethod
    async def begin(cls, program: Program, ends: AsyncExitStack) -> "Honest":
        """Connect two long-lived proxies, and one that reconnects; wait until each was answered."""
        one, two, three = (Proxy(program, name) for name in PROXIES[:3])
        works = (
            ("one stays", one.run()),
            ("two stays", two.run()),
            ("three comes and goes", three.connect()),
        )
        honest = cls([one, two, three], [asyncio.create_task(work, name=name) for name, work in works])
        ends.push_async_callback(honest._end)
        await honest.served()
        return honest

    async def served(self) -> None:
        """Wait until each client was answered once more; fail if one of them failed."""
        before = self._counts()
        async with asyncio.timeout(SECONDS):
            while any(now <= then for now, then in zip(self._counts(), before, strict=True)):
                self.check()
                await asyncio.sleep(0.01)

    def check(self) -> None:
        """Raise the error of a failed client; long-lived ones have one stream and must never lose it."""
        for task in self.tasks:
            if task.done():
                task.result()

    def take(self) -> str:
        """Return the delays since the last call, as text."""
        answers = sorted(answer for proxy in self.proxies for answer in proxy.answers)
        beginnings = sorted(beginning for proxy in self.proxies for beginning in proxy.beginnings)
        for proxy in self.proxies:
            proxy.answers.clear()
            proxy.beginnings.clear()
        return f"answers {_words(answers)}, new streams {_words(beginnings)}"

    def _counts(self) -> list[int]:
        return [len(proxy.answers) + len(proxy.beginnings) for proxy in self.proxies]

    async def _end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def _words(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    at = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
    return f"n={len(seconds)} p50 {seconds[len(seconds) // 2] * 1000:.1f} ms p99 {at * 1000:.1f} ms"
