"""A mesh under load: several servers, real Envoys that call each other, and observers of what is sent.

Each Envoy's application may call only the next one, over a new TCP connection, which no sidecar dials twice:
a request fails whenever an endpoint, a certificate or a listener is missing for a moment.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from meshwright.etcd.access import Endpoint
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import BootstrapSettings, bootstrap
from tests.e2e.policy.calls import exchange
from tests.e2e.ring import LOCAL_PORT, PORT, Link
from tests.golden.envoys import HERE, RunningEnvoy, keep
from tests.golden.running_mesh import serve
from tests.kubernetes.etcd.cut_relay import relay_to
from tests.kubernetes.replicas.engines import Engine, Network
from tests.kubernetes.replicas.observers import Change, Observer, RealProxy, running
from tests.kubernetes.replicas.requests import ANSWERED, Requests, constant_requests
from tests.kubernetes.replicas.rows import Row, Table
from tests.kubernetes.replicas.servers import PEERS_REACHED_AT, SECONDS, Replica, alive
from tests.meshes import texts
from tests.tools.deadline import until
from tests.tools.forked_cli import Commands
from tests.tools.program import Program

Equip = Callable[["Mesh", BootstrapSettings, AsyncExitStack], BootstrapSettings]
"""Return the settings of an Envoy's bootstrap, for example with files that an agent renews.

The agent runs until the end of the exit stack.
"""

SERVERS: Final = ("a", "b", "c")
ENVOYS: Final = 3
OBSERVERS: Final = 4
PAUSE: Final = 0.05
"""Seconds between two requests of one sidecar: with three sidecars up to 60 requests a second."""


@dataclass
class Mesh:
    """The running mesh. All servers read the same manifests in `manifests`."""

    engine: Engine
    replicas: tuple[Replica, ...]
    manifests: Path
    table: Table
    peer_networks: dict[str, Network] = field(default_factory=dict)
    """The network from all other servers to the port for servers, by the server's name."""
    proxies: list[RealProxy] = field(default_factory=list)
    observers: list[Observer] = field(default_factory=list)
    serials: dict[str, str] = field(default_factory=dict)
    """Serial of the certificate of each proxy, by the proxy's whole name."""
    requests: Requests = field(default_factory=Requests)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return the addresses of all servers for proxies."""
        return tuple(replica.ads for replica in self.replicas)

    def replica(self, address: str) -> Replica:
        """Return the server with this address for proxies."""
        return next(replica for replica in self.replicas if replica.ads == address)

    async def is_settled(self) -> bool:
        """Return whether all running servers are well, and each proxy has a stream to one of them."""
        up = alive(self.replicas)
        if not all(await asyncio.gather(*(replica.is_well() for replica in up))):
            return False
        here = {replica.ads for replica in up}
        if not all(observer.address in here for observer in self.observers):
            return False
        connected = await asyncio.gather(*(proxy.is_connected() for proxy in self.proxies))
        return all(connected) and await self.streams() >= self.proxy_count

    @property
    def proxy_count(self) -> int:
        """Return the number of Envoys and observers, which have one stream each."""
        return len(self.proxies) + len(self.observers)

    async def streams(self) -> int:
        """Return the number of streams at all running servers."""
        return sum(await asyncio.gather(*(replica.streams() for replica in alive(self.replicas))))

    async def settled(self, seconds: float = SECONDS) -> None:
        """Wait until the mesh is settled."""
        await until(self.is_settled, seconds, self._explained)

    async def envoys_at(self, replica: Replica) -> int:
        """Return the number of Envoys that are connected to a running server."""
        return await replica.streams() - sum(item.address == replica.ads for item in self.observers)

    async def with_most_envoys(self) -> Replica:
        """Return the running server that most Envoys are connected to."""
        counts = [(await self.envoys_at(replica), replica) for replica in alive(self.replicas)]
        return max(counts, key=lambda pair: pair[0])[1]

    def moves(self) -> int:
        """Return how many streams the observers have begun so far."""
        return sum(len(observer.streams) for observer in self.observers)

    def others(self, replica: Replica) -> list[Replica]:
        """Return the running servers without this one."""
        return [item for item in alive(self.replicas) if item is not replica]

    def forget(self, observer: Observer) -> None:
        """Expect no stream of this observer any more. The observer goes on trying."""
        self.observers.remove(observer)

    def slow(self, seconds: float) -> None:
        """Let each answer of the store be late by this time, for all servers."""
        for network in self.engine.networks.values():
            network.slow(seconds)

    def cut(self) -> None:
        """Cut all servers off from the store."""
        for network in self.engine.networks.values():
            network.cut()

    def heal(self) -> None:
        """Connect all servers to the store again."""
        for network in self.engine.networks.values():
            network.heal()

    async def moves_on(self, observer: Observer) -> None:
        """End an observer's stream, and wait until it is served again, by whichever server."""
        count = len(observer.streams)
        assert observer.stream is not None, "the observer has no stream"
        await observer.stream.leave()
        await until(lambda: len(observer.streams) > count and observer.is_served, SECONDS)

    async def moves_to(self, observer: Observer, replica: Replica) -> None:
        """Let an observer connect to this server only."""
        observer.addresses = (replica.ads,)
        await self.moves_on(observer)
        assert observer.address == replica.ads

    @asynccontextmanager
    async def row(self, name: str, *, changes: bool = False) -> AsyncIterator[Row]:
        """Measure one fault in the block, from a settled mesh; then require the goals of every fault.

        With `changes` the mesh changes in the block, so proxies may be sent other versions.
        """
        await self.settled()
        began, versions = time.monotonic(), await self._versions()
        counts = {observer.name: len(observer.changes) for observer in self.observers}
        row = Row(name, self.engine.name)
        try:
            yield row
            await self.settled()
        finally:
            requests = self.requests.since(began)
            row.sent, row.failures = len(requests), self.requests.failures(began)
            row.longest = max((request.seconds for request in requests), default=0.0)
            row.changes = [
                change for observer in self.observers for change in observer.changes[counts[observer.name] :]
            ]
            row.changes += _differences(versions, await self._versions())
            self.table.add(row)
        row.check(changes=changes)

    async def _versions(self) -> dict[str, dict[str, str]]:
        return {proxy.name: dict(await proxy.versions()) for proxy in self.proxies}

    def _explained(self) -> str:
        said = [f"{item.name} {item.address or 'not served'} {item.refusals[-2:]}" for item in self.observers]
        return f"alive: {[replica.name for replica in alive(self.replicas)]}; observers: {said}"


def _differences(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> list[Change]:
    return [
        Change(proxy, "", name, before[proxy].get(name, ""), after[proxy].get(name, ""))
        for proxy in before
        for name in sorted(before[proxy].keys() | after[proxy].keys())
        if before[proxy].get(name) != after[proxy].get(name)
    ]


def made_replicas(
    engine: Engine,
    commands: Callable[[str], Commands],
    folder: Path,
    names: Sequence[str],
    manifests: Path,
) -> tuple[Replica, ...]:
    """Return servers that are not started yet, which read the same manifests."""
    passphrase = folder / "passphrase"
    passphrase.write_text("the same on all servers\n")
    passphrase.chmod(0o600)
    made = []
    for name in names:
        program = Program(folder / name / "state", folder / name / "files", commands(name))
        program.reads = ("--mesh", str(manifests))
        program.environment |= engine.environment()
        common = ("--set", f"key_passphrase_file={passphrase}", "--set", "enrolment_proofs=join-token")
        made.append(Replica(name, program, (*engine.flags(name), *common)))
    return tuple(made)


def without_agent(mesh: Mesh, settings: BootstrapSettings, ends: AsyncExitStack) -> BootstrapSettings:
    """Leave the files of an Envoy as they are."""
    del mesh, ends
    return settings


@asynccontextmanager
async def running_mesh(
    engine: Engine,
    commands: Callable[[str], Commands],
    folder: Path,
    envoy: str,
    table: Table,
    more: Sequence[str] = (),
    observers: int = OBSERVERS,
    equip: Equip = without_agent,
) -> AsyncIterator[Mesh]:
    """Start servers, Envoys, observers and load, and end them with the block.

    `commands` returns the commands for a server's name. `more` names servers that are known to proxies, and
    are not started.
    """
    links = tuple(Link(number, ENVOYS) for number in range(ENVOYS))
    watching = [f"watcher-{number}" for number in range(observers)]
    callers = (*watching, "newcomer")
    manifests = folder / "manifests"
    manifests.mkdir()
    _write_manifests(manifests, links, callers)
    replicas = made_replicas(engine, commands, folder, (*SERVERS, *more), manifests)
    mesh = Mesh(engine, replicas, manifests, table)
    async with AsyncExitStack() as ends:
        for replica in replicas:
            ends.callback(_end, replica)
            at = HostPort.parse(replica.peers)
            relay = relay_to(Endpoint(at.host, at.port, tls=True), PEERS_REACHED_AT, at.port)
            mesh.peer_networks[replica.name] = Network([await ends.enter_async_context(relay)])
        # All at once, so that each start tries what two servers that create the CA at once have to do.
        first = replicas[: len(SERVERS)]
        await asyncio.gather(*(replica.start() for replica in first))
        await _connect(mesh, links, watching, folder, envoy, equip, ends)
        calls = [partial(_call, link) for link in links]
        await until(partial(_all_answer, calls), SECONDS)
        # A server announces its address for the others seconds after its start. If a test cut off the store
        # before that, the others could not ask it until the end of the test.
        await until(partial(_know_each_other, first), SECONDS)
        mesh.requests = await ends.enter_async_context(constant_requests(calls, PAUSE))
        yield mesh


async def _know_each_other(replicas: Sequence[Replica]) -> bool:
    """Return whether each of these servers gets answers from all others."""
    views = await asyncio.gather(*(replica.view("/replicas") for replica in replicas))
    return all(len(view["replicas"]) == len(replicas) and not view["partial"] for view in views)


def _end(replica: Replica) -> None:
    if replica.server is not None:
        replica.thaw()
    replica.program.end()


async def _connect(
    mesh: Mesh,
    links: Sequence[Link],
    watching: Sequence[str],
    folder: Path,
    envoy: str,
    equip: Equip,
    ends: AsyncExitStack,
) -> None:
    """Issue certificates, each at another server, and start Envoys and observers."""
    servers = itertools.cycle(alive(mesh.replicas))
    session = await ends.enter_async_context(HERE.session())
    roots = set()
    for name in (*(link.name for link in links), *watching):
        proxy, place = ProxyName.parse(f"{name}.{name}.shop"), folder / name
        mesh.serials[str(proxy)] = await next(servers).issued(proxy, place)
        roots.add((place / "ca.pem").read_bytes())
        if name in watching:
            mesh.observers.append(Observer(str(proxy), place, mesh.addresses))
    assert len(roots) == 1, "servers that started at once have made several CAs"
    for link in links:
        await serve(ends, link.application, PORT, partial(_answer, link.name))
        place = folder / link.name
        settings = BootstrapSettings(
            proxy_name=ProxyName.parse(f"{link.name}.{link.name}.shop"),
            trust_domain=TrustDomain("cluster.local"),
            ads=tuple(map(HostPort.parse, mesh.addresses)),
            certificate_file=place / "proxy.pem",
            key_file=place / "proxy.key",
            ca_file=place / "ca.pem",
            admin=HostPort("127.0.0.1", 0),
        )
        (place / "bootstrap.json").write_text(bootstrap(equip(mesh, settings, ends)))
        kept = RunningEnvoy(place, "", session)
        await keep(envoy, kept, HERE, 2, ends)
        mesh.proxies.append(RealProxy(link.name, kept))
    ends.enter_context(running(mesh.observers))


def _write_manifests(folder: Path, links: Sequence[Link], watching: Sequence[str]) -> None:
    """Write the ring, and observers that may call each member of the ring."""
    ring = itertools.chain.from_iterable(link.manifests() for link in links)
    seen = []
    for number, name in enumerate(watching, 1):
        seen += [texts.account(name), texts.workload(name, f"10.0.1.{number}"), texts.service(name)]
        seen += [texts.target(f"{name}-{link.name}", name, link.name, texts.tcp("echo")) for link in links]
    (folder / "mesh.yaml").write_text(texts.joined(texts.tcp_route("echo", PORT), *ring, *seen))


async def _call(link: Link) -> str:
    try:
        text = await exchange(link.address, LOCAL_PORT)
    except TimeoutError:
        return "no answer in time"
    return ANSWERED if text == f"{link.next.name}: hello\n" else f"wrong answer {text!r}"


async def _all_answer(calls: Sequence[Callable[[], Awaitable[str]]]) -> bool:
    answers = await asyncio.gather(*(call() for call in calls))
    return set(answers) == {ANSWERED}


async def _answer(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        writer.write(f"{name}: ".encode() + await reader.readline())
        await writer.drain()
    writer.close()
