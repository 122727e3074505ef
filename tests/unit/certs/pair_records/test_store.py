"""Tests of shared service certificates: what others write, what is damaged, and a store that is away."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

import pytest
from structlog.testing import capture_logs

from certs.contract import Names, Usage
from certs.errors import CorruptPairError, StateError
from certs.issuers.authority import CertificateAuthority
from certs.keys.material import ServiceCertificate
from certs.keys.pair import Pair, issue_pair
from certs.manager import CertificateManager
from certs.pair_records.fields import key_of_holder, with_pair
from certs.pair_records.store import RecordedPairs
from certs.state.sealing import RecordSeal
from certs.state.stored_pair import ADS_SERVER, WEBHOOK, Holder, holder_of
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName
from meshwright.records.content import Content
from meshwright.records.contract import Record, ReplicaId, Revision
from meshwright.records.key import Key, key_of
from meshwright.records.threads import CallOnLoopError
from tests.tools import leak_forms
from tests.tools.shared_records import Fault, LoopThread, away
from tests.unit.certs.pair_records.servers import DATA_KEY, PairServers

IDENTITY: Final = ServiceIdentity(Namespace("shop"), ServiceAccountName("cart"))
CART: Final = holder_of(IDENTITY)
STORE: Final = Holder("services/shop/store")
KEY: Final = key_of("services", "shop", "cart")
DAY: Final = timedelta(days=1)
NEWER: Final = b'{"form": 2, "count": 1, "epoch": 0, "by": "b", "fields": {}}'


@pytest.fixture
def servers() -> Iterator[PairServers]:
    """Provide servers of one store."""
    with LoopThread() as thread:
        yield PairServers(thread)


@pytest.fixture
def issued(authority: CertificateAuthority, now: datetime) -> Callable[[], Pair]:
    """Return a function to issue another pair for one service."""
    return lambda: issue_pair(authority, Usage.SERVICE, Names("service"), DAY, now)


def manager_of(pairs: RecordedPairs, authority: CertificateAuthority) -> CertificateManager:
    """Return the certificate manager of one server."""
    return CertificateManager(authority, pairs, DAY, lambda: 0.0)


def test_proxy_that_moves_between_servers_gets_the_same_bytes(
    servers: PairServers, authority: CertificateAuthority, now: datetime
) -> None:
    """This holds on each of many moves, and on one to a server that has just started."""
    managers = [manager_of(servers.open(), authority) for _ in range(3)]
    seen: set[tuple[bytes, bytes]] = set()
    for move in range(9):
        if move == 6:
            managers.append(manager_of(servers.open(), authority))
        held: ServiceCertificate = managers[move % len(managers)].ensure(IDENTITY, ("cart.shop",), now)
        seen.add((held.chain_pem, held.key.reveal()))
    assert (len(seen), sum(manager.issued for manager in managers)) == (1, 1)


def test_key_of_a_record_is_its_holder_and_servers_have_none(
    servers: PairServers, issued: Callable[[], Pair]
) -> None:
    """A server's certificate stays on its machine: its key would otherwise be known to all."""
    pairs = servers.open()
    assert (key_of_holder(CART), pairs.place(CART)) == (KEY, "record services/shop/cart")
    for holder in (ADS_SERVER, WEBHOOK, Holder("services"), Holder("servers/shop/cart")):
        for call in (pairs.load, pairs.place, lambda holder: pairs.keep(holder, issued(), None)):
            with pytest.raises(ValueError, match=f"the certificate of '{holder}' is not shared"):
                call(holder)
    assert servers.memory.records == {}


def test_content_copied_from_another_service_is_refused_and_replaced(
    servers: PairServers, issued: Callable[[], Pair]
) -> None:
    """Who may write records, but not read the data key, cannot give a service another one's identity."""
    pairs, pair = servers.open(), issued()
    theirs = pairs.keep(STORE, issued(), None)
    servers.put_content(KEY, servers.memory.records[key_of_holder(STORE)].content)
    with pytest.raises(
        CorruptPairError, match=r"record services/shop/cart .* copied from another record than"
    ):
        pairs.load(CART)
    assert pairs.keep(CART, pair, None) == pair == pairs.load(CART)
    assert pairs.load(STORE) == theirs


@pytest.mark.parametrize(
    "damage",
    [{"certificate": None}, {"certificate": "damaged"}, {"key": 5}, {"key": "damaged"}, {"key": None}],
)
def test_damaged_certificate_is_replaced_by_the_next_pair(
    servers: PairServers, issued: Callable[[], Pair], damage: dict[str, object]
) -> None:
    """It can be issued again. Its end does not count, and the error names the record."""
    pairs, pair = servers.open(), issued()
    pairs.keep(CART, issued(), None)
    servers.put(KEY, {**servers.content(KEY).fields, **damage})
    with pytest.raises(CorruptPairError, match="record services/shop/cart cannot be used"):
        pairs.load(CART)
    assert pairs.keep(CART, pair, "0a") == pair == pairs.load(CART)
    assert pairs.services_end() == pair.leaf.not_after


@pytest.mark.parametrize("content", [NEWER, b"damaged", b"{}"])
def test_unreadable_or_newer_record_is_passed_over_and_never_overwritten(
    servers: PairServers, authority: CertificateAuthority, now: datetime, content: bytes
) -> None:
    """The service has a certificate all the same, until a restart, and the others are not affected."""
    pairs = servers.open()
    theirs = manager_of(pairs, authority).ensure(
        ServiceIdentity(Namespace("shop"), ServiceAccountName("store")), (), now
    )
    servers.put_content(KEY, content)
    manager = manager_of(pairs, authority)
    with capture_logs() as logs:
        held = manager.ensure(IDENTITY, (), now)
    assert (manager.get(IDENTITY), servers.memory.records[KEY].content) == (held, content)
    error, warning = [log for log in logs if log["log_level"] != "info"]
    assert (error["event"], error["key"]) == ("record of a service certificate cannot be read", KEY)
    assert warning["event"] == "service certificate issued but not stored"
    assert "record services/shop/cart: " in warning["reason"]
    assert pairs.services_end() == theirs.not_after


def test_fields_of_a_newer_version_are_kept(servers: PairServers, issued: Callable[[], Pair]) -> None:
    """A newer server may add fields while this one still renews certificates."""
    pairs, first, second = servers.open(), issued(), issued()
    pairs.keep(CART, first, None)
    servers.put(KEY, {**servers.content(KEY).fields, "new": {"of": "tomorrow"}})
    assert pairs.keep(CART, second, first.leaf.serial) == second
    content = servers.content(KEY)
    assert (content.fields["new"], content.count, sorted(content.fields)) == (
        {"of": "tomorrow"},
        101,
        ["certificate", "key", "new"],
    )


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_pair_of_a_write_without_an_answer_is_stored_once(
    servers: PairServers, issued: Callable[[], Pair], fault: Fault
) -> None:
    """The writer finds its own pair, and does not take itself for another server."""
    pairs, first, second, faults = servers.open(), issued(), issued(), list[Fault]()
    servers.clients[0].fault = lambda: faults.pop() if faults else Fault.NONE
    for pair, before in ((first, None), (second, first.leaf.serial)):
        faults.append(fault)
        assert pairs.keep(CART, pair, before) == pair == pairs.load(CART)
    assert (servers.memory.writes, servers.content(KEY).count) == (2, 2)


def test_nothing_is_lost_while_the_store_is_away(
    servers: PairServers, authority: CertificateAuthority, issued: Callable[[], Pair], now: datetime
) -> None:
    """Known pairs are used, and a new one is used without the store, until the next pair replaces it."""
    pairs, first = servers.open(), issued()
    pairs.keep(CART, first, None)
    with away(servers.clients[0]):
        with pytest.raises(StateError, match="shared service certificates cannot be written: the store of"):
            pairs.keep(CART, issued(), first.leaf.serial)
        assert (pairs.load(CART), pairs.services_end()) == (first, first.leaf.not_after)
        manager = manager_of(pairs, authority)
        held = manager.ensure(ServiceIdentity(Namespace("shop"), ServiceAccountName("store")), (), now)
        assert (manager.issued, pairs.load(STORE)) == (1, None)
    assert held.chain_pem
    second = issued()
    assert pairs.keep(CART, second, first.leaf.serial) == second == pairs.load(CART)


def test_own_pair_is_known_before_the_store_delivers_it_and_later_ones_after(
    servers: PairServers, issued: Callable[[], Pair]
) -> None:
    """A late delivery does not take the own pair away."""
    one, two = servers.open(), servers.open()
    first, second = issued(), issued()
    servers.clients[0].is_cut = True
    one.keep(CART, first, None)
    assert one.load(CART) == first == two.load(CART)
    two.keep(CART, second, first.leaf.serial)
    assert one.load(CART) == first

    async def heal() -> None:
        servers.clients[0].heal()

    servers.thread.run(heal())
    assert one.load(CART) == second
    servers.delete(KEY)
    assert (one.load(CART), one.services_end()) == (None, None)


def test_pair_that_another_server_stores_before_the_answer_arrives_is_not_taken_away(
    servers: PairServers, issued: Callable[[], Pair]
) -> None:
    """The store delivers the later pair while this server still waits for the answer to its own write."""
    pairs, first, second = servers.open(), issued(), issued()
    later = Content(with_pair(None, KEY, second, RecordSeal(DATA_KEY)), ReplicaId("other"), 2).encode()
    write = servers.clients[0].write

    async def late_answer(key: Key, content: bytes, before: Revision | None) -> Record:
        record = await write(key, content, before)
        servers.memory.put(key, later)
        return record

    servers.clients[0].write = late_answer  # type: ignore[method-assign]
    assert pairs.keep(CART, first, None) == first
    assert pairs.load(CART) == second


def test_changed_holders_are_told(servers: PairServers, issued: Callable[[], Pair]) -> None:
    """Only those with another content are told, also after a break, and removed ones too."""
    told: list[frozenset[Holder]] = []
    pairs, other = servers.start(), servers.open()
    first = other.keep(CART, issued(), None)
    servers.thread.start(pairs.follow(told.append))
    other.keep(STORE, issued(), None)
    servers.put(key_of("services", "odd"), {})
    other.keep(CART, issued(), first.leaf.serial)
    servers.put_content(KEY, servers.memory.records[KEY].content)
    servers.delete(KEY)
    assert told == [{CART}, {STORE}, {CART}, {CART}]


def test_server_that_holds_another_certificate_takes_the_stored_one(
    servers: PairServers, authority: CertificateAuthority, now: datetime
) -> None:
    """It was issued while the store was away. Afterwards a proxy that moves gets one certificate."""
    one, two = (manager_of(servers.open(), authority) for _ in range(2))
    with away(servers.clients[0]):
        alone = one.ensure(IDENTITY, (), now)
    stored = two.ensure(IDENTITY, (), now)
    assert one.fitting(IDENTITY, (), now) == alone != stored
    one.compare(IDENTITY)
    two.compare(IDENTITY)
    assert (one.fitting(IDENTITY, (), now), two.fitting(IDENTITY, (), now)) == (stored, stored)
    assert two.fitting(IDENTITY, (), now) is two.get(IDENTITY) is stored
    assert (one.issued, two.issued) == (1, 1)


def test_server_keeps_its_certificate_if_the_stored_one_is_worse(
    servers: PairServers, authority: CertificateAuthority, issued: Callable[[], Pair], now: datetime
) -> None:
    """The stored one has other names, or is due, or is gone."""
    pairs = servers.open()
    manager = manager_of(pairs, authority)
    held = manager.ensure(IDENTITY, (), now)
    old = manager_of(servers.open(), authority).request(IDENTITY, ())
    for content in (with_pair(None, KEY, issued(), RecordSeal(DATA_KEY)), {"certificate": "damaged"}):
        servers.put(KEY, content)
        manager.compare(IDENTITY)
        assert manager.fitting(IDENTITY, (), now) is held
    servers.delete(KEY)
    old(now - timedelta(hours=20))
    manager.compare(IDENTITY)
    assert manager.fitting(IDENTITY, (), now) is held
    servers.delete(KEY)
    manager.compare(IDENTITY)
    assert manager.fitting(IDENTITY, (), now) is held
    assert manager.issued == 1


def test_reads_wait_for_the_first_list(servers: PairServers, issued: Callable[[], Pair]) -> None:
    """Otherwise a start would issue all certificates again, and forget the roots of former issuers."""
    first = servers.open().keep(CART, issued(), None)
    pairs = servers.start()
    for read in (lambda: pairs.load(CART), pairs.services_end, pairs.last_end):
        with pytest.raises(StateError, match="the store has not answered yet"):
            read()
    assert pairs.keep(CART, issued(), None) == first
    servers.thread.start(pairs.follow())
    servers.thread.run(asyncio.wait_for(pairs.listed(), 10))
    assert (pairs.load(CART), pairs.last_end()) == (first, first.leaf.not_after)


def test_second_list_has_all_pairs(servers: PairServers, issued: Callable[[], Pair]) -> None:
    """What was removed between two lists is gone."""
    pairs, other = servers.start(), servers.open()

    async def follow_for_a_moment() -> None:
        task = asyncio.ensure_future(pairs.follow())
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    kept = other.keep(STORE, issued(), None)
    other.keep(CART, issued(), None)
    servers.thread.run(follow_for_a_moment())
    servers.delete(KEY)
    servers.thread.run(follow_for_a_moment())
    assert (pairs.load(CART), pairs.load(STORE)) == (None, kept)


def test_writing_on_the_event_loop_is_an_error(servers: PairServers, issued: Callable[[], Pair]) -> None:
    """It would wait for itself for ever. Reading does not wait."""
    pairs, pair = servers.open(), issued()

    async def work() -> None:
        assert pairs.load(CART) is None
        with pytest.raises(CallOnLoopError):
            pairs.keep(CART, pair, None)

    servers.thread.run(work())


def test_no_private_key_is_readable_in_the_store_or_a_log(
    servers: PairServers, authority: CertificateAuthority, issued: Callable[[], Pair], now: datetime
) -> None:
    """This covers every encoding of the key's number and of the data key, and damaged contents."""
    pairs, pair = servers.open(), issued()
    with capture_logs() as logs:
        held = manager_of(pairs, authority).ensure(IDENTITY, (), now)
        pairs.keep(STORE, pair, None)
        servers.put(KEY, {**servers.content(key_of_holder(STORE)).fields})
        with pytest.raises(CorruptPairError) as error:
            pairs.load(CART)
        manager_of(pairs, authority).ensure(IDENTITY, (), now)
    secrets = {
        "pair": leak_forms.of_key(pair.key.reveal()),
        "service": leak_forms.of_key(held.key.reveal()),
        "data key": DATA_KEY,
    }
    contents = [record.content for record in servers.memory.records.values()]
    texts = [repr(item) for item in (logs, pairs, pairs.load(CART), error.value, servers.memory)]
    assert [leak_forms.seen(place, secrets) for place in (*contents, *map(str.encode, texts))] == [[]] * 7
    assert not any(b"PRIVATE KEY" in content for content in contents)
    assert Content.decode(contents[0]).by == ReplicaId("server-0")
