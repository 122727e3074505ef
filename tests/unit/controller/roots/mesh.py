"""A mesh in one process: servers with the real root change on shared records, and proxies that follow them.

A proxy takes over what its server gives: roots, and a service certificate. Its agent confirms the roots, and
renews the proxy certificate. After each step of the proxies `Mesh.check` verifies all chains.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

from certs.authority_records.fields import AUTHORITY, state_in
from certs.authority_records.store import RecordedAuthority
from certs.errors import CertificateError
from certs.keys.leaf import is_signed_by_bundle, read_leaf
from certs.ledger.records.ledger import RecordedLedger
from certs.proxy import issue_proxy
from certs.report_records.store import RecordedReports
from certs.roots.authority import ChangingAuthority
from certs.roots.evidence import ServerEvidence
from certs.roots.proxy_evidence import RootAcknowledgements
from certs.roots.rotation import Fingerprint, Rotation, Stage
from certs.roots.server_report import Reports, ServerReport
from certs.state.sealing import RecordSeal
from meshwright.controller.roots.change import RootChange
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.records.content import Content
from meshwright.records.contract import Epoch, Record, ReplicaId, Revision
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.deadline import Deadline
from tests.tools.shared_records import FaultyRecords, LoopThread

DOMAIN: Final = TrustDomain("cluster.local")
START: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)
SEAL: Final = RecordSeal(bytes(range(32)))
VALIDITY: Final = timedelta(days=30)


@cache
def accepts(chain_pem: bytes, bundle_pem: bytes) -> bool:
    """Return whether the holder of these roots accepts a certificate; the answers are remembered."""
    return is_signed_by_bundle(chain_pem, bundle_pem)


@dataclass
class History(Memory):
    """Content of a store that remembers the root rotations in it, without repetitions."""

    rotations: list[Rotation | None] = field(default_factory=list)

    def put(self, key: Key, content: bytes) -> Record:
        """Store a content, and remember the rotation."""
        if key == AUTHORITY:
            rotation = state_in(Content.decode(content).fields, SEAL).rotation
            assert rotation is None or isinstance(rotation, Rotation)
            if not self.rotations or self.rotations[-1] != rotation:
                self.rotations.append(rotation)
        return super().put(key, content)

    def stages(self) -> list[Stage | None]:
        """Return the stages in order."""
        return [None if rotation is None else rotation.stage for rotation in self.rotations]


class Client(FaultyRecords):
    """Client of one server, which may be killed before or after a write of the authority."""

    left: int | None = None

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Write a record, unless the server is killed before, or after it."""
        self._count(key)
        record = await super().write(key, content, before)
        self._count(key)
        return record

    def _count(self, key: Key) -> None:
        if self.left is None or key != AUTHORITY:
            return
        self.left -= 1
        if self.left < 0:
            self.is_away = True
            self._require()


class MeshServer:
    """One server with the real root change; its own parts follow each step at once."""

    def __init__(self, mesh: "Mesh", name: str, ahead: timedelta) -> None:
        self.mesh, self.name, self.ahead, loop = mesh, ReplicaId(name), ahead, mesh.thread.loop
        self.loop, self.changed = asyncio.get_running_loop(), asyncio.Event()
        self.client = Client(MemoryRecords(mesh.memory, self.name))
        self.store = RecordedAuthority(self.client, self.name, loop, SEAL)
        self.feed = FaultyRecords(MemoryRecords(mesh.memory, self.name))
        self.ledger = RecordedLedger(self.feed, self.name, loop)
        self._reports = RecordedReports(self.client, self.name, loop, SEAL)
        mesh.thread.start(
            self.ledger.follow(lambda _: None), self._reports.follow(), self.store.follow(self._hear)
        )
        self.authority = ChangingAuthority(self.store, DOMAIN, mesh.now)
        self.shown, self.trusted = self.authority.signing_bundle(), self.authority.trust_bundle()
        self.confirmed: dict[ProxyName, tuple[bytes, datetime]] = {}
        self.said: tuple[str, tuple[str, ...]] = ("", ())
        self.change = RootChange(
            self.authority, self.ledger, self._acknowledgements, self._stepped, lambda: self.now, others=self
        )
        self.tasks: list[asyncio.Task[None]] = []
        self.term: asyncio.Task[None] | None = None
        self.is_killed = False
        self.has_departures = False

    @property
    def now(self) -> datetime:
        """Return the time by the clock of this server."""
        return self.mesh.now + self.ahead

    def _hear(self) -> None:
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.changed.set)

    def reports(self, rotation: Rotation) -> Reports:
        """Return the reports of the other servers that are here."""
        return self._reports.others(self.mesh.here(), rotation)

    def issued(self) -> tuple[str, ...]:
        """Return the serials of the proxy certificates that this server has issued last."""
        return self.ledger.issued()

    def give(self, own: ServerReport, rotation: Rotation) -> None:
        """Give the others the report of this server."""
        self._reports.write(own, rotation)

    def take_back(self) -> None:
        """Remove the report of this server."""
        self._reports.remove((self.name,))

    def has_ended_recently(self) -> bool:
        """Return whether a server has ended, as the test says."""
        return self.has_departures

    def announce(self, step: str, holdouts: Collection[str]) -> None:
        """Remember what is announced."""
        self.said = step, tuple(holdouts)

    async def _acknowledgements(self) -> RootAcknowledgements:
        here = [proxy for proxy in self.mesh.proxies if proxy.at is self]
        confirmed = {name: self.authority.trusted_by(roots) for name, (roots, _) in self.confirmed.items()}
        return RootAcknowledgements(
            [proxy for proxy in here if proxy.trust_bundle],
            frozenset(proxy.name for proxy in here),
            confirmed,
            ServerEvidence(
                frozenset({Fingerprint(self.authority.signer_of(self.shown))}),
                self.authority.trusted_by(self.trusted),
            ),
            {name: at for name, (_, at) in self.confirmed.items()},
        )

    async def _stepped(self) -> None:
        self.shown, self.trusted = self.authority.signing_bundle(), self.authority.trust_bundle()

    def hold(self) -> Callable[[], None]:
        """Let the server stay behind until the returned function is called."""
        for task in self.tasks:
            task.cancel()
        self.tasks.clear()
        return self.run

    def run(self) -> None:
        """Follow the others."""
        self.tasks.append(asyncio.create_task(self.change.following(self.changed)))

    def lead(self, epoch: int) -> None:
        """Lead from now on, beside a former leader that does not know it yet."""
        self.term = asyncio.create_task(self._lead(Epoch(epoch)))
        self.tasks.append(self.term)

    async def _lead(self, epoch: Epoch) -> None:
        while True:
            with suppress(CertificateError):
                await self.change.stepping(await asyncio.to_thread(self.store.lead, epoch))
            await asyncio.sleep(0.002)

    async def kill(self) -> None:
        """End at once, as a process does: nothing is written any more, and the others see that it is gone."""
        self.is_killed = self.client.is_away = self.feed.is_away = True
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@dataclass(eq=False)
class MeshProxy:
    """A proxy: roots and certificates as its files and its Envoy have them."""

    name: ProxyName
    at: MeshServer | None = None
    asks: MeshServer | None = None
    trust_bundle: bytes = b""
    chain: bytes = b""
    channel: bytes = b""
    certificate: bytes = b""

    @property
    def node(self) -> str:
        """Return the name."""
        return str(self.name)

    def connect(self, server: MeshServer) -> None:
        """Connect to a server: both verify each other."""
        assert accepts(server.shown, self.channel), f"{self.name} does not trust {server.name}"
        assert accepts(self.certificate, server.trusted), f"{server.name} refuses {self.name}"
        self.at = server

    def join(self, server: MeshServer) -> None:
        """Join, or renew the certificate; the roots come with it."""
        issued = issue_proxy(server.authority, server.ledger, self.name, VALIDITY, server.now)
        self.certificate, self.channel = issued.chain_pem, server.authority.trust_bundle()
        self.asks = server

    def follow(self) -> None:
        """Take over what the servers give, as Envoy and the agent do."""
        if (server := self.at) is not None and not server.is_killed:
            if (serial := self.serial(server)) is not None:
                server.ledger.claim(serial, server.now)
                with suppress(CertificateError):
                    server.ledger.write_unwritten()
            self.trust_bundle, self.chain = server.authority.trust_bundle(), server.authority.signing_bundle()
        if (asked := self.asks) is not None and not asked.client.is_away:
            asked.confirmed[self.name] = self.channel, asked.now
            self.channel = asked.authority.trust_bundle()
            signer = asked.authority.signer_of(self.certificate)
            if asked.authority.other and signer != asked.authority.fingerprint:
                with suppress(CertificateError):
                    self.join(asked)

    def serial(self, server: MeshServer) -> str | None:
        """Return the serial of the present certificate, or None while the server does not know it."""
        serial = read_leaf(self.certificate).serial
        return None if server.ledger.entry(serial) is None else serial


class Mesh:
    """The servers of one mesh, and its proxies."""

    def __init__(self, thread: LoopThread) -> None:
        self.thread, self.memory = thread, History()
        self.servers: list[MeshServer] = []
        self.proxies: list[MeshProxy] = []
        self.now = START

    def start(self, name: str, ahead: timedelta = timedelta()) -> MeshServer:
        """Start a server, whose clock is ahead."""
        server = MeshServer(self, name, ahead)
        self.servers.append(server)
        server.run()
        return server

    def join(self, name: str, server: MeshServer, asks: MeshServer | None = None) -> MeshProxy:
        """Let a proxy join and connect at a server; its agent asks the same server later, or another one."""
        proxy = MeshProxy(ProxyName.parse(f"{name}.shop.prod"))
        proxy.join(server)
        proxy.connect(server)
        proxy.asks = asks or server
        self.proxies.append(proxy)
        return proxy

    def here(self) -> list[ReplicaId]:
        """Return the servers that are here, as all of them see it."""
        return [server.name for server in self.servers if not server.is_killed]

    def check(self) -> None:
        """Verify that all proxies accept each other, and their servers, and are accepted there."""
        connected = [proxy for proxy in self.proxies if proxy.at is not None and proxy.trust_bundle]
        for one in connected:
            for other in connected:
                assert accepts(one.chain, other.trust_bundle), f"{other.name} refuses {one.name}"
            for server in self.servers:
                if not server.is_killed:
                    one_at, one.at = one.at, None
                    one.connect(server)
                    one.at = one_at

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let proxies and time go on until a condition holds."""
        deadline = Deadline(60)
        while not holds():
            assert not deadline.has_passed(), self.memory.stages()
            await self.turn()

    async def turn(self) -> None:
        """Let proxies and time go on once."""
        self.now += timedelta(seconds=1)
        for proxy in self.proxies:
            proxy.follow()
        self.check()
        await asyncio.sleep(0.002)

    def is_done(self) -> bool:
        """Return whether a rotation has ended, and all servers that are here know it."""
        return (
            len(self.memory.rotations) > 1
            and self.memory.rotations[-1] is None
            and all(server.authority.rotation is None for server in self.servers if not server.is_killed)
        )

    async def end(self) -> None:
        """End all servers."""
        for server in self.servers:
            await server.kill()


@contextmanager
def mesh() -> Iterator[Mesh]:
    """Provide an empty mesh."""
    with LoopThread() as thread:
        yield Mesh(thread)
