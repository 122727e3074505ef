"""Tests of the shared ledger beyond the contract: other servers, faults of the store, and foreign records."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from certs.errors import PeerRefused, RefusalReason, RequestError, StateError
from certs.keys.material import PeerCertificate
from certs.ledger.contract import UnwrittenError
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.records.fields import MOST_BYTES, entries_in, key_of_proxy, with_entries, without_entries
from certs.ledger.records.header import HEADER
from certs.ledger.retention import Retention
from certs.peer import admitted
from meshwright.records.content import Content
from meshwright.records.contract import Record, ReplicaId, Revision
from meshwright.records.key import Key
from meshwright.records.threads import CallOnLoopError
from tests.tools.deadline import wait_until
from tests.tools.shared_records import Fault, away
from tests.unit.certs.ledger.entries import START, YEAR, new_entry, proxy
from tests.unit.certs.ledger.records.servers import (
    NEVER_REVOKED,
    U1,
    NameRevoked,
    Server,
    Servers,
    servers_of_one_store,
)

LATER = START + timedelta(hours=1)


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Provide servers of an empty store."""
    with servers_of_one_store() as made:
        yield made


@pytest.fixture
def here(servers: Servers) -> Server:
    """Return one server."""
    return servers.start()


@pytest.fixture
def there(servers: Servers, here: Server) -> Server:
    """Return another server of the same store."""
    del here
    return servers.start()


def shown(serial: str) -> PeerCertificate:
    """Return the certificate of `u1.shop.default` as a connecting proxy shows it."""
    return PeerCertificate("u1.shop.default", serial, START, START + YEAR, (), client_auth=True)


def faults(server: Server, *given: Fault) -> None:
    """Give the next writes of a server these faults."""
    rest = iter(given)
    server.store.fault = lambda: next(rest, Fault.NONE)


def test_proxy_that_joined_at_one_server_is_let_in_by_another(here: Server, there: Server) -> None:
    """Behind one address, the first stream of a proxy often reaches another server than its join."""
    there.ledger.record(new_entry("1a"))
    assert admitted(shown("1a"), here.ledger, LATER).entry == new_entry("1a")
    assert here.news == [new_entry("1a")]
    assert there.news == []


def test_proxy_that_is_revoked_at_one_server_is_refused_by_another(here: Server, there: Server) -> None:
    """The other server hears of it, so that it ends the proxy's streams."""
    here.ledger.record(new_entry("1a"))
    revoked = there.ledger.revoke("1a", LATER, "stolen")
    with pytest.raises(PeerRefused) as refused:
        admitted(shown("1a"), here.ledger, LATER)
    assert refused.value.reason is RefusalReason.REVOKED
    assert here.news == [revoked]


def test_serial_is_fetched_before_its_write_is_heard_of(
    servers: Servers, here: Server, there: Server
) -> None:
    """Here the connection that brings changes is cut, as one that is slow."""
    here.store.is_cut = True
    there.ledger.record(new_entry("1a"))
    assert here.ledger.entry("1a") is None
    assert servers.thread.run(here.ledger.fetch(proxy("u1"))) == (new_entry("1a"),)
    assert admitted(shown("1a"), here.ledger, LATER).entry == new_entry("1a")
    assert servers.thread.run(here.ledger.fetch(proxy("u2"))) == ()
    with (
        away(here.store),
        pytest.raises(StateError, match=r"certificates of u2\.shop\.default cannot be read"),
    ):
        servers.thread.run(here.ledger.fetch(proxy("u2")))


def test_claim_and_admission_elsewhere_are_news_and_own_ones_are_not(here: Server, there: Server) -> None:
    """A server lets workloads get traffic whose proxies are connected with another server."""
    here.ledger.record(new_entry("1a"))
    there.news.clear()
    here.ledger.claim("1a", LATER, "10.0.0.1:5")
    here.ledger.admit((proxy("u1"),), LATER)
    ready = replace(new_entry("1a"), claimed_at=LATER, admitted_at=LATER, claimed_from="10.0.0.1:5")
    assert (here.news, there.news) == ([], [ready])


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_certificate_is_recorded_once_after_a_lost_request_or_answer(
    here: Server, there: Server, fault: Fault
) -> None:
    """The outcome is looked up, and the write is done once more if it was not done."""
    faults(here, fault)
    here.ledger.record(new_entry("1a"), NEVER_REVOKED)
    assert here.ledger.entries() == there.ledger.entries() == (new_entry("1a"),)


def test_repeated_record_of_one_certificate_succeeds_and_of_another_fails(
    here: Server, there: Server
) -> None:
    """The certificate may have been claimed and revoked meanwhile, which stays so."""
    here.ledger.record(new_entry("1a"))
    there.ledger.claim("1a", LATER)
    revoked = there.ledger.revoke("1a", LATER)
    here.ledger.record(new_entry("1a"))
    assert here.ledger.entries() == (revoked,)
    with pytest.raises(StateError, match=r"serial 1a is given to another certificate of u1\.shop\.default"):
        here.ledger.record(new_entry("1a", at=LATER))
    assert here.ledger.entries() == (revoked,)


def test_revocation_between_the_look_and_the_write_is_noticed(servers: Servers, here: Server) -> None:
    """The write is compared with the record that the judge has seen."""
    here.ledger.record(new_entry("1a"))
    content = Content.decode(servers.memory.records[U1].content)
    certificates = {"1a": {**content.fields["certificates"]["1a"], "revoked_at": int(LATER.timestamp())}}  # type: ignore[index]

    def revoke_first() -> Fault:
        here.store.fault = lambda: Fault.NONE
        servers.memory.put(U1, Content({"certificates": certificates}, ReplicaId("b"), 2).encode())
        return Fault.NONE

    here.store.fault = revoke_first
    with pytest.raises(NameRevoked):
        here.ledger.record(new_entry("2a"), NEVER_REVOKED)
    assert [entry.serial for entry in here.ledger.entries()] == ["1a"]


def test_revocation_remembered_during_the_write_is_noticed(here: Server, there: Server) -> None:
    """A revocation that the store does not take counts here, so the certificate is not handed out.

    The new certificate is already in the store. It is revoked, so that it keeps nothing in force.
    """
    here.ledger.record(new_entry("1a"))
    stamps = here.ledger._entries.stamps

    def revoke_here() -> Fault:
        stamps.note(new_entry("1a"), Stamp.REVOKED, StampDetail(LATER))
        return Fault.NONE

    here.store.fault = revoke_here
    with pytest.raises(NameRevoked):
        here.ledger.record(new_entry("2a"), NEVER_REVOKED)
    here.ledger.write_unwritten()
    assert [(entry.serial, entry.revoked_at) for entry in there.ledger.entries()] == [
        ("1a", LATER),
        ("2a", START),
    ]


def test_revocation_without_the_store_counts_here_and_is_written_later(
    servers: Servers, here: Server, there: Server
) -> None:
    """The other server lets the proxy in until then."""
    here.ledger.record(new_entry("1a"))
    with away(here.store), pytest.raises(UnwrittenError, match=r"revocation of 1a is not stored$") as error:
        here.ledger.revoke("1a", LATER)
    with pytest.raises(PeerRefused):
        admitted(shown("1a"), here.ledger, LATER)
    assert admitted(shown("1a"), there.ledger, LATER).entry == new_entry("1a")
    servers.heal(here)
    here.ledger.write_unwritten()
    assert there.ledger.entry("1a") == error.value.entry == replace(new_entry("1a"), revoked_at=LATER)


def test_stored_revocation_can_be_repeated_without_the_store(here: Server) -> None:
    """The repeated command has nothing to write, so it succeeds."""
    here.ledger.record(new_entry("1a"))
    revoked = here.ledger.revoke("1a", LATER)
    with away(here.store):
        assert here.ledger.revoke("1a", START + YEAR) == revoked


def test_admission_is_written_while_another_thread_writes(servers: Servers, here: Server) -> None:
    """Only a failed write makes others leave theirs to the next attempt."""
    for serial, uuid in (("1a", "u1"), ("2a", "u2")):
        here.ledger.record(new_entry(serial, uuid))
    inner, begun, answered = here.store.write, threading.Event(), asyncio.Event()

    async def slow(key: Key, content: bytes, before: Revision | None) -> Record:
        begun.set()
        if key == U1:
            await answered.wait()
        return await inner(key, content, before)

    here.store.write = slow  # type: ignore[method-assign]
    threads = []
    for serial, uuid in (("1a", "u1"), ("2a", "u2")):
        here.ledger.claim(serial, LATER)
        threads.append(threading.Thread(target=here.ledger.admit, args=((proxy(uuid),), LATER)))
        threads[-1].start()
        assert begun.wait(60)
    other = key_of_proxy(proxy("u2"))
    wait_until(lambda: b"admitted_at" in servers.memory.records[other].content, 10)
    servers.thread.loop.call_soon_threadsafe(answered.set)
    for thread in threads:
        thread.join(60)
    assert here.ledger.unwritten == 0


DAMAGED = {
    "no JSON": b"{",
    "newer form": b'{"form":2,"count":1,"epoch":0,"by":"b","fields":{}}',
    "certificates no object": b'{"form":1,"count":1,"epoch":0,"by":"b","fields":{"certificates":[]}}',
    "time no number": b'{"form":1,"count":1,"epoch":0,"by":"b","fields":'
    b'{"certificates":{"1a":{"issued_at":"x"}}}}',
    "time too late": b'{"form":1,"count":1,"epoch":0,"by":"b","fields":'
    b'{"certificates":{"1a":{"issued_at":1e30,"not_after":1}}}}',
    "certificate no object": b'{"form":1,"count":1,"epoch":0,"by":"b","fields":{"certificates":{"1a":3}}}',
    "no end": b'{"form":1,"count":1,"epoch":0,"by":"b","fields":{"certificates":{"1a":{"issued_at":1}}}}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_unreadable_record_is_named_and_left_as_it_is(servers: Servers, here: Server, content: bytes) -> None:
    """The last readable form stays in force here, and other proxies are not affected."""
    for serial, uuid in (("1a", "u1"), ("2a", "u2")):
        here.ledger.record(new_entry(serial, uuid))
        here.ledger.claim(serial, LATER)
    with capture_logs() as logs:
        servers.put(U1, content)
        with pytest.raises(StateError, match="proxies/default/shop/u1"):
            servers.thread.run(here.ledger.fetch(proxy("u1")))
    assert [(log["event"], log["key"]) for log in logs] == [("record of a proxy cannot be read", U1)]
    with pytest.raises(UnwrittenError):
        here.ledger.revoke("1a", LATER)
    with pytest.raises(StateError, match="proxies/default/shop/u1"):
        here.ledger.record(new_entry("3a"))
    with pytest.raises(StateError, match="proxies/default/shop/u1"):
        here.ledger.write_unwritten()
    here.ledger.admit((proxy("u2"),), LATER)
    assert servers.memory.records[U1].content == content
    assert here.ledger.entry("1a") == replace(new_entry("1a"), claimed_at=LATER, revoked_at=LATER)
    beside = servers.start().ledger
    assert beside.entries() == (replace(new_entry("2a", "u2"), claimed_at=LATER, admitted_at=LATER),)


def test_unreadable_record_about_the_ledger_is_named_and_left_as_it_is(
    servers: Servers, here: Server
) -> None:
    """Certificates are issued and revoked as before."""
    here.ledger.name_authority("aa")
    content = b'{"form":1,"count":1,"epoch":0,"by":"b","fields":{"authority":3}}'
    with capture_logs() as logs:
        servers.put(HEADER, content)
    assert [(log["event"], log["key"]) for log in logs] == [("record of the ledger cannot be read", HEADER)]
    with pytest.raises(StateError, match="the signing CA is not recorded: record ledger: authority"):
        here.ledger.change_authority("bb")
    with pytest.raises(StateError, match="the signing CA is not recorded: record ledger: authority"):
        here.ledger.name_authority("bb")
    here.ledger.record(new_entry("1a"))
    here.ledger.revoke("1a", LATER)
    assert here.ledger.authority() == "aa"


def test_fields_of_others_are_kept(servers: Servers, here: Server) -> None:
    """A proxy's record has room for what the proxy rejects, and for facts of a newer version."""
    here.ledger.record(new_entry("1a"))
    certificates = servers.fields(U1)["certificates"]
    assert isinstance(certificates, dict)
    fields = {"rejected": ["a"], "certificates": {"1a": {**certificates["1a"], "model": "x"}}}
    servers.put(U1, Content(fields, ReplicaId("newer"), 2).encode())
    here.ledger.claim("1a", LATER)
    here.ledger.record(new_entry("2a"))
    here.ledger.revoke("1a", LATER)
    after = servers.fields(U1)
    assert isinstance(after["certificates"], dict)
    assert (after["rejected"], after["certificates"]["1a"]["model"]) == (["a"], "x")
    assert sorted(after["certificates"]) == ["1a", "2a"]


def test_record_that_is_deleted_by_hand_is_written_again(servers: Servers, here: Server) -> None:
    """Proxies go on meanwhile, and no revocation is lost. The deletion is logged once."""
    here.ledger.record(new_entry("1a"))
    here.ledger.record(new_entry("2a"))
    here.ledger.revoke("1a", LATER)
    before = here.ledger.entries()
    with capture_logs() as logs:
        servers.delete(U1)
    assert [log["event"] for log in logs] == ["record of a proxy was deleted; it is written again"]
    assert (here.ledger.entries(), here.ledger.unwritten) == (before, 1)
    here.ledger.write_unwritten()
    assert (servers.start().ledger.entries(), here.ledger.unwritten) == (before, 0)


def test_store_that_went_back_loses_no_revocation(servers: Servers, here: Server, there: Server) -> None:
    """An older snapshot of the store is restored, as an operator does after the loss of its disks."""
    here.ledger.record(new_entry("1a"))
    older = servers.memory.records[U1].content
    here.ledger.record(new_entry("2a"))
    here.ledger.revoke("1a", LATER)
    before = here.ledger.entries()
    servers.put(U1, older)
    with pytest.raises(NameRevoked):
        here.ledger.record(new_entry("3a"), NEVER_REVOKED)
    assert here.ledger.entries() == there.ledger.entries() == before
    for server in (here, there):
        server.ledger.write_unwritten()
    assert servers.start().ledger.entries() == before
    assert (here.ledger.unwritten, there.ledger.unwritten) == (0, 0)


@pytest.mark.parametrize("is_cut", [False, True])
def test_store_that_went_back_and_went_on_loses_no_revocation(
    servers: Servers, here: Server, *, is_cut: bool
) -> None:
    """A server that started after the loss has written to the record before this server writes it again.

    This server hears of each write, or of the last one only.
    """
    here.ledger.record(new_entry("1a"))
    older = servers.memory.records[U1].content
    revoked = here.ledger.revoke("1a", LATER)
    here.store.is_cut = is_cut
    servers.put(U1, older)
    new = servers.start().ledger
    new.claim("1a", LATER)
    new.admit((), LATER)
    for serial in ("2a", "3a"):
        new.record(new_entry(serial), NEVER_REVOKED)
    servers.heal(here)
    assert here.ledger.entry("1a") == replace(revoked, claimed_at=LATER)
    here.ledger.write_unwritten()
    assert new.entries() == here.ledger.entries()
    assert new.entry("1a") == replace(revoked, claimed_at=LATER)


def test_late_changes_take_nothing_away(servers: Servers, here: Server, there: Server) -> None:
    """The answer of an own write is newer than changes that arrive after it."""
    here.ledger.record(new_entry("1a"))
    earlier = servers.memory.records[U1]
    here.store.is_cut = True
    there.ledger.claim("1a", LATER)
    there.ledger.admit((), LATER)
    here.ledger.revoke("1a", LATER)
    expected = replace(new_entry("1a"), claimed_at=LATER, revoked_at=LATER)
    servers.thread.run(_heard_late(here, earlier))
    assert here.ledger.entries() == (expected,)
    servers.heal(here)
    assert (here.ledger.entries(), here.ledger.unwritten) == ((expected,), 0)


async def _heard_late(server: Server, record: Record) -> None:
    server.ledger._entries.take(U1, record)


def test_removed_certificates_and_proxies_are_forgotten(servers: Servers, here: Server) -> None:
    """Old certificates are removed by a write, then a proxy without certificates with its record."""
    here.ledger.record(new_entry("1a"))
    here.ledger.record(new_entry("2a"))
    here.ledger.claim("1a", LATER)
    kept = {"2a": servers.fields(U1)["certificates"]["2a"]}  # type: ignore[index]
    count = Content.decode(servers.memory.records[U1].content).count
    servers.put(U1, Content({"certificates": kept}, ReplicaId("leader"), count + 1).encode())
    assert (here.ledger.entries(), here.ledger.entry("1a")) == ((new_entry("2a"),), None)
    servers.put(U1, Content({"certificates": {}}, ReplicaId("leader"), count + 2).encode())
    servers.delete(U1)
    here.ledger.write_unwritten()
    assert (here.ledger.entries(), here.ledger.unwritten) == ((), 0)
    with pytest.raises(RequestError):
        here.ledger.claim("1a", LATER)
    assert here.ledger.first() == servers.start().ledger.first() == "1a"


def test_admissions_of_many_proxies_are_one_write_each(servers: Servers, here: Server) -> None:
    """The number of writes is what limits a store; claim and admission of a proxy share one."""
    for number in range(40):
        here.ledger.record(new_entry(f"{number:x}", f"u{number}"))
        here.ledger.claim(f"{number:x}", LATER)
    before = servers.memory.writes
    here.ledger.admit([proxy(f"u{number}") for number in range(40)], LATER)
    here.ledger.admit([proxy(f"u{number}") for number in range(40)], LATER)
    for number in range(40):
        here.ledger.see(f"{number:x}", START + YEAR / 2)
    here.ledger.write_unwritten()
    assert servers.memory.writes - before == 40


def test_proxy_with_too_many_certificates_gets_no_more_and_can_be_revoked(
    servers: Servers, here: Server
) -> None:
    """A record has a limited size in every store."""
    entries = [replace(new_entry(f"{number:x}"), joined_by="a" * 200) for number in range(300)]
    servers.put(U1, Content(with_entries(None, entries) or {}, ReplicaId("b")).encode())
    with pytest.raises(StateError, match=f"at most {MOST_BYTES} are allowed"):
        here.ledger.record(new_entry("fff"))
    here.ledger.claim("0", LATER, "b" * 200)
    assert here.ledger.revoke("0", LATER, "c" * 200).revoked_at == LATER


def test_revocation_that_has_no_room_in_the_store_counts_here(servers: Servers, here: Server) -> None:
    """The record is full, for example because another program wrote a long field."""
    here.ledger.record(new_entry("1a"))
    servers.put(U1, Content({**servers.fields(U1), "x": "x" * 262_000}, ReplicaId("b"), 2).encode())
    with pytest.raises(UnwrittenError, match="at most 262144 are allowed"):
        here.ledger.revoke("1a", LATER)
    assert here.ledger.entry("1a") == replace(new_entry("1a"), revoked_at=LATER)
    with pytest.raises(StateError, match="at most 262144 are allowed"):
        here.ledger.write_unwritten()
    here.ledger.record(new_entry("2a", "u2"))
    here.ledger.claim("2a", LATER)
    here.ledger.admit((), LATER)
    assert servers.start().ledger.entry("2a") == replace(new_entry("2a", "u2"), claimed_at=LATER)


async def test_calls_that_wait_are_errors_on_the_event_loop(servers: Servers) -> None:
    """They would wait for themselves for ever. Reads and claims do not wait."""
    ledger = servers.start().ledger
    ledger.record(new_entry("1a"))

    async def calls() -> tuple[LedgerEntry | None, list[str]]:
        errors = []
        for call in (
            lambda: ledger.record(new_entry("2a")),
            lambda: ledger.revoke("1a", LATER),
            lambda: ledger.admit((), LATER),
            ledger.write_unwritten,
            lambda: ledger.name_authority("aa"),
            lambda: ledger.change_authority("aa"),
        ):
            with pytest.raises(CallOnLoopError) as error:
                call()
            errors.append(str(error.value))
        return ledger.claim("1a", LATER), errors

    claimed, errors = servers.thread.run(calls())
    assert claimed is not None
    assert len(errors) == 6
    assert servers.memory.records.keys() == {U1, HEADER}


def test_concurrent_threads_of_several_servers_agree(servers: Servers) -> None:
    """Twelve threads issue, claim and admit, while one revokes: nobody issues after the revocation."""
    ledgers = [servers.start().ledger for _ in range(3)]
    ledgers[0].record(new_entry("aaa"))
    barrier, late, issued = threading.Barrier(13), list[str](), list[str]()
    revoked = threading.Event()

    def issue(number: int) -> None:
        ledger = ledgers[number % 3]
        barrier.wait(60)
        for step in range(4):
            serial, was_revoked = f"{number:x}0{step}", revoked.is_set()
            try:
                ledger.record(new_entry(serial), NEVER_REVOKED)
            except NameRevoked:
                return
            issued.append(serial)
            if was_revoked:
                late.append(serial)
            ledger.claim(serial, LATER)
            ledger.admit((proxy("u1"),), LATER)

    def revoke() -> None:
        barrier.wait(60)
        ledgers[1].revoke("aaa", LATER)
        revoked.set()

    threads = [threading.Thread(target=issue, args=(number,)) for number in range(12)]
    threads.append(threading.Thread(target=revoke))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for ledger in ledgers:
        ledger.write_unwritten()
    assert late == []
    entries = ledgers[0].entries()
    assert [ledger.entries() for ledger in ledgers] == [entries] * 3
    assert {entry.serial for entry in entries if entry.revoked_at is None} <= {*issued}
    assert {*issued} <= {entry.serial for entry in entries}


@pytest.mark.parametrize("is_removed", [False, True])
def test_revocation_holds_of_a_certificate_that_the_store_lost_a_moment_ago(
    servers: Servers, is_removed: bool
) -> None:
    """The server has not heard of the loss, and the record of the proxy is still there."""
    server = servers.start()
    server.ledger.record(new_entry("a1"))
    snapshot = servers.memory.records[U1].content
    server.ledger.record(new_entry("b2"))
    whole = Content.decode(servers.memory.records[U1].content)
    server.store.is_cut = True
    without = without_entries(whole.fields, {"b2"}) or {}
    removed = Content(without, ReplicaId("leader"), whole.count + 1).encode()
    servers.put(U1, removed if is_removed else snapshot)
    revoked = server.ledger.revoke("b2", START, "stolen")
    assert (revoked.revoked_at, revoked.revoked_why) == (START, "stolen")
    stored = entries_in(proxy("u1"), servers.fields(U1))
    assert [(entry.serial, entry.revoked_at) for entry in stored] == [
        ("a1", None),
        ("b2", START),
    ]


def test_revoked_certificate_is_not_forgotten_while_the_store_has_lost_the_revocation(
    servers: Servers,
) -> None:
    """The Pod ended days ago, but its token may be good: what this server knows decides as well."""
    server = servers.start()
    server.ledger.record(replace(new_entry("a1"), joined_by="kubernetes Pod shop/cart-1 (8a)"))
    snapshot = servers.memory.records[U1].content
    server.ledger.revoke("a1", START, "stolen")
    server.store.is_cut = True
    servers.put(U1, snapshot)
    retention = Retention(START + timedelta(days=3), START, keeps_revoked=False)
    assert not servers.thread.run(server.ledger.forget(proxy("u1"), retention))
    assert [entry.serial for entry in entries_in(proxy("u1"), servers.fields(U1))] == ["a1"]
    server.ledger.write_unwritten()
    (stored,) = entries_in(proxy("u1"), servers.fields(U1))
    assert stored.revoked_at == START
