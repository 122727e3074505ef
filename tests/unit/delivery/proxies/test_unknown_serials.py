"""Tests of certificates that another server has issued, and of which this server has not heard yet."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from certs.contract import Names, Usage
from certs.issuers.authority import CertificateAuthority
from certs.keys.pair import issue_pair
from certs.ledger.contract import SharedLedger
from certs.ledger.records.ledger import RecordedLedger
from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from meshwright.delivery.proxies.identity import MeshAuthenticator
from meshwright.delivery.proxies.unknown_serials import PER_SECOND, UnknownSerials, unknown_serials
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.own_authority import own_authority
from tests.tools.shared_records import Fault, FaultyRecords
from xds.cache import NodeKey
from xds.hooks import AuthenticationUnavailable, Peer, StreamRefused

NAME = ProxyName.parse("a.store.shop")
HOUR = timedelta(hours=1)


@dataclass
class Scene:
    """This server, which is cut from changes, and another one; with a clock and a count of reads."""

    authority: CertificateAuthority
    there: SharedLedger
    here: SharedLedger
    client: FaultyRecords
    now: datetime
    seconds: float = 0.0
    reads: int = 0
    authenticator: MeshAuthenticator = field(init=False)

    def __post_init__(self) -> None:
        look_up = unknown_serials(self.here, lambda: self.seconds)
        self.authenticator = MeshAuthenticator(
            self.here, lambda: None, lambda: self.now, unknown_serials=look_up
        )
        self.client.read_fault = self._count

    def _count(self) -> Fault:
        self.reads += 1
        return Fault.NONE

    async def joined(self, name: ProxyName = NAME) -> Peer:
        """Let a proxy join at the other server, and return the proxy as a client of this server."""
        issued = await asyncio.to_thread(issue_proxy, self.authority, self.there, name, HOUR, self.now)
        return Peer(issued.chain_pem, "ipv4:10.0.0.1:5")

    def stranger(self, name: str = str(NAME), usage: Usage = Usage.PROXY) -> Peer:
        """Return a client whose certificate no ledger has, below the same CA."""
        issued = issue_pair(self.authority, usage, Names(name), HOUR, self.now)
        return Peer(issued.chain_pem, "ipv4:10.0.0.2:5")

    async def answer(self, peer: Peer) -> str:
        """Return the node of a new client, or the reason why the client gets none."""
        try:
            await self.authenticator.prepare(peer)
            return self.authenticator.authenticate(peer)
        except (AuthenticationUnavailable, StreamRefused) as error:
            return error.reason


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    """Return a CA of all servers."""
    now = datetime.fromisoformat("2031-05-06T07:08:09+00:00")
    return own_authority(tmp_path_factory.mktemp("ca"), TrustDomain("cluster.local"), now)


@pytest.fixture
async def scene(authority: CertificateAuthority) -> AsyncIterator[Scene]:
    """Provide two servers of one store."""
    memory, loop = Memory(), asyncio.get_running_loop()
    clients = [FaultyRecords(MemoryRecords(memory, ReplicaId(name))) for name in ("there", "here")]
    ledgers = [RecordedLedger(client, ReplicaId(str(n)), loop) for n, client in enumerate(clients)]
    tasks = [asyncio.create_task(ledger.follow(lambda entries: None)) for ledger in ledgers]
    clients[1].is_cut = True
    now = datetime.fromisoformat("2031-05-06T07:08:09+00:00")
    yield Scene(authority, ledgers[0], ledgers[1], clients[1], now)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_proxy_that_joined_elsewhere_a_moment_ago_is_let_in(scene: Scene) -> None:
    """The store is asked once, and its answer is remembered. Without the question the proxy is refused."""
    peer = await scene.joined()
    with pytest.raises(StreamRefused, match="not_issued"):
        scene.authenticator.authenticate(peer)
    assert [await scene.answer(peer), await scene.answer(peer)] == [NodeKey(str(NAME))] * 2
    assert scene.reads == 1


async def test_proxy_revoked_elsewhere_before_its_first_stream_is_refused(scene: Scene) -> None:
    """The look-up brings the revocation too."""
    peer = await scene.joined()
    (entry,) = scene.there.entries()
    await asyncio.to_thread(scene.there.revoke, entry.serial, scene.now)
    assert await scene.answer(peer) == "revoked"


async def test_certificate_that_no_server_has_issued_is_refused(scene: Scene) -> None:
    """A client without a proxy's name, or without a certificate, costs the store nothing."""
    peers = [scene.stranger(), scene.stranger("ads"), Peer(None), Peer(b"no certificate")]
    answers = [await scene.answer(peer) for peer in peers]
    assert answers == ["not_issued", "bad_common_name", "no_certificate", "unreadable"]
    assert scene.reads == 1


async def test_unknown_proxy_must_try_again_while_the_store_is_away(scene: Scene) -> None:
    """The proxy may have joined elsewhere. Known proxies are let in meanwhile."""
    known, unknown = await scene.joined(), await scene.joined(ProxyName.parse("b.store.shop"))
    assert await scene.answer(known) == NodeKey(str(NAME))
    scene.client.is_away = True
    assert [await scene.answer(peer) for peer in (known, unknown)] == [str(NAME), "ledger_unavailable"]
    scene.client.is_away = False
    assert await scene.answer(unknown) == "b.store.shop"


async def test_look_ups_per_second_are_limited(scene: Scene) -> None:
    """Clients above the limit must try again, because this server cannot know them. Known ones need none."""
    known = await scene.joined(ProxyName.parse("known.store.shop"))
    await scene.answer(known)
    strangers = [scene.stranger(f"u{number}.store.shop") for number in range(int(PER_SECOND))]
    answers = [await scene.answer(peer) for peer in strangers]
    assert answers == ["not_issued"] * (int(PER_SECOND) - 1) + ["too_many_unknown"]
    assert (scene.reads, await scene.answer(known)) == (PER_SECOND, "known.store.shop")
    scene.seconds += 1 / PER_SECOND
    assert await scene.answer(strangers[-1]) == "not_issued"


async def test_streams_of_one_proxy_share_a_look_up(scene: Scene) -> None:
    """A stream that ends meanwhile does not end the look-up for the others."""
    peer = await scene.joined()
    first, *others = (asyncio.create_task(scene.answer(peer)) for _ in range(4))
    await asyncio.sleep(0)
    first.cancel()
    assert await asyncio.gather(*others) == [str(NAME)] * 3
    with suppress(asyncio.CancelledError):
        await first
    assert scene.reads == 1


@pytest.fixture
def own_ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    """Provide a ledger that is not shared."""
    with SqliteLedger.open(tmp_path / "ledger.sqlite") as ledger:
        yield ledger


async def test_ledger_that_is_not_shared_is_never_asked(own_ledger: SqliteLedger, scene: Scene) -> None:
    """Its server knows all certificates of its CA."""
    assert unknown_serials(own_ledger, lambda: 0.0) is None
    assert isinstance(unknown_serials(scene.here, lambda: 0.0), UnknownSerials)
    authenticator = MeshAuthenticator(own_ledger, lambda: None, lambda: scene.now)
    await authenticator.prepare(scene.stranger())
    with pytest.raises(StreamRefused, match="not_issued"):
        authenticator.authenticate(scene.stranger())
