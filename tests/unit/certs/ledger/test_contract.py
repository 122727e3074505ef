"""Tests of the contract of ledgers: the behaviour of each one, and of two ledgers on one record.

Another implementation can be added to the ones that are run here.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import pytest

from certs.errors import RequestError, StateError
from certs.keys.serial import read_serial, serial_text
from certs.ledger.contract import Judge, Ledger, UnwrittenError
from certs.ledger.entry import MOST_WORDS, SEEN_EVERY, LedgerEntry, LedgerState
from certs.ledger.records.ledger import RecordedLedger
from certs.ledger.sqlite import SqliteLedger
from meshwright.mesh.names import ProxyUuid
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.shared_records import FaultyRecords, LoopThread, away
from tests.unit.certs.ledger.entries import START, YEAR, new_entry, proxy
from tests.unit.certs.ledger.memory import MemoryLedger, Record


class Ledgers(Protocol):
    """Factory of ledgers with one record."""

    writes_use: bool
    """Whether the last use of a certificate is written, and not only remembered."""

    def open(self) -> Ledger:
        """Open another ledger, as another process would; it is closed with the test."""

    def hindered(self) -> AbstractContextManager[None]:
        """Keep the open ledgers from writing."""


@dataclass
class SqliteLedgers:
    """Factory of ledgers with one file."""

    path: Path
    stack: ExitStack
    opened: list[SqliteLedger] = field(default_factory=list)
    writes_use: bool = True

    def open(self) -> Ledger:
        """Open another ledger."""
        self.opened.append(self.stack.enter_context(SqliteLedger.open(self.path)))
        return self.opened[-1]

    @contextmanager
    def hindered(self) -> Iterator[None]:
        """Let SQLite refuse to write."""
        self._refuse("ON")
        yield
        self._refuse("OFF")

    def _refuse(self, word: str) -> None:
        for sqlite_ledger in self.opened:
            sqlite_ledger._connection.execute(f"PRAGMA query_only = {word}")


@dataclass
class MemoryLedgers:
    """Factory of ledgers with one record in memory."""

    record: Record = field(default_factory=Record)
    writes_use: bool = True

    def open(self) -> Ledger:
        """Open another ledger."""
        return MemoryLedger(self.record)

    @contextmanager
    def hindered(self) -> Iterator[None]:
        """Let the record be full."""
        self.record.full = True
        yield
        self.record.full = False


@dataclass
class RecordedLedgers:
    """Factory of ledgers with one store of records: each is another server."""

    thread: LoopThread
    memory: Memory = field(default_factory=Memory)
    stores: list[FaultyRecords] = field(default_factory=list)
    are_issued_elsewhere: bool = False
    writes_use: bool = False

    def open(self) -> Ledger:
        """Start another server, or another two of which one issues the certificates of the other."""
        ledger = self._followed(RecordedLedger(*self._client(), self.thread.loop))
        if self.are_issued_elsewhere:
            return self._followed(IssuedElsewhere(ledger, *self._client(), self.thread))
        return ledger

    def _client(self) -> tuple[FaultyRecords, ReplicaId]:
        replica = ReplicaId(f"server-{len(self.stores)}")
        self.stores.append(FaultyRecords(MemoryRecords(self.memory, replica)))
        return self.stores[-1], replica

    def _followed(self, ledger: RecordedLedger) -> Ledger:
        self.thread.start(ledger.follow(lambda entries: None))
        return ledger

    def hindered(self) -> AbstractContextManager[None]:
        """Let the store be away."""
        return away(*self.stores)


class IssuedElsewhere(RecordedLedger):
    """Ledger of one server whose certificates are issued by another server."""

    def __init__(self, issuing: Ledger, store: FaultyRecords, replica: ReplicaId, thread: LoopThread) -> None:
        super().__init__(store, replica, thread.loop)
        self._issuing = issuing

    def record(self, entry: LedgerEntry, judge: Judge | None = None) -> None:
        """Let the other server record the entry; a judge needs what is remembered here."""
        if judge is None:
            self._issuing.record(entry)
        else:
            super().record(entry, judge)

    def name_authority(self, fingerprint: str) -> None:
        """Let the other server record the signing CA."""
        self._issuing.name_authority(fingerprint)

    def change_authority(self, fingerprint: str) -> None:
        """Let the other server record that another CA signs."""
        self._issuing.change_authority(fingerprint)


@pytest.fixture(params=["sqlite", "memory", "recorded", "recorded-elsewhere"])
def ledgers(request: pytest.FixtureRequest, state: Path) -> Iterator[Ledgers]:
    """Provide ledgers of an empty record, of each kind in turn."""
    with ExitStack() as stack:
        match request.param:
            case "sqlite":
                yield SqliteLedgers(state / "ledger.db", stack)
            case "memory":
                yield MemoryLedgers()
            case _:
                thread = stack.enter_context(LoopThread())
                yield RecordedLedgers(thread, are_issued_elsewhere=request.param == "recorded-elsewhere")


@pytest.fixture
def ledger(ledgers: Ledgers) -> Ledger:
    """Return one ledger."""
    return ledgers.open()


def admitted(ledger: Ledger, now: datetime) -> LedgerEntry | None:
    """Admit the proxy of the first entry; return this entry."""
    ledger.admit((proxy("u1"),), now)
    return ledger.entry("1f")


def test_certificate_goes_from_issued_to_claimed_to_revoked(ledger: Ledger) -> None:
    """Each step records the time of its first occurrence, and a repeated step changes nothing."""
    later, last = START + timedelta(hours=1), START + timedelta(hours=2)
    ledger.record(new_entry("1f"))
    seen = [
        ledger.entry("1f"),
        ledger.claim("1f", START),
        ledger.claim("1f", later),
        admitted(ledger, later),
        admitted(ledger, last),
        ledger.revoke("1f", last),
        ledger.revoke("1f", last + YEAR),
    ]
    base = ("1f", "u1.shop.default", ProxyUuid("u1"), START, START + YEAR)
    assert seen == [
        LedgerEntry(*base),
        LedgerEntry(*base, START),
        LedgerEntry(*base, START),
        LedgerEntry(*base, START, None, later),
        LedgerEntry(*base, START, None, later),
        LedgerEntry(*base, START, last, later),
        LedgerEntry(*base, START, last, later),
    ]
    assert [entry.state for entry in seen if entry] == ["issued", *["claimed"] * 4, *["revoked"] * 2]


def test_details_of_the_first_claim_and_revocation_are_kept(ledgers: Ledgers) -> None:
    """The address of the claim and the reason of the revocation are one line each, of limited length."""
    first, second = ledgers.open(), ledgers.open()
    for serial in ("1a", "2a"):
        first.record(new_entry(serial))
    first.claim("1a", START, "10.0.0.1:5")
    first.claim("1a", START, "10.0.0.2:5")
    first.admit((), START)
    first.revoke("1a", START, "stolen\nor so \x1b[31m")
    first.revoke("1a", START, "another")
    first.revoke("2a", START, "y" * 1000)
    one, two = second.entries()
    assert (one.claimed_from, one.revoked_why) == ("10.0.0.1:5", "stolen or so  [31m")
    assert (two.claimed_from, two.revoked_why) == ("", "y" * MOST_WORDS)


def test_use_of_a_certificate_is_recorded_every_quarter_of_an_hour(ledgers: Ledgers) -> None:
    """Only claimed certificates that are not revoked are recorded.

    The time is written with other stamps. A ledger of several servers remembers the time where the
    certificate is used, and writes none.
    """
    first, second = ledgers.open(), ledgers.open()
    for serial in ("1a", "2a", "3a"):
        first.record(new_entry(serial))
    soon, later, last = (START + SEEN_EVERY * item for item in (0.5, 1, 2))
    assert first.see("1a", later).last_seen is None
    for serial in ("2a", "3a"):
        assert first.claim(serial, START).last_seen == START
    first.admit((), START)
    second.revoke("3a", START)
    assert (first.see("2a", soon).last_seen, first.see("3a", later).last_seen) == (START, START)
    unwritten = int(ledgers.writes_use)
    assert (first.unwritten, first.see("2a", later).last_seen, first.unwritten) == (0, later, unwritten)
    second.see("2a", last)
    second.write_unwritten()
    first.write_unwritten()
    expected = [None, last if ledgers.writes_use else later, START]
    assert [entry.last_seen for entry in first.entries()] == expected


def test_deadline_of_a_claim_is_kept_and_applies_to_unclaimed_certificates(ledger: Ledger) -> None:
    """A certificate that was claimed in time remains in force after its deadline."""
    day = timedelta(days=1)
    for serial in ("1a", "2a"):
        ledger.record(LedgerEntry.issued(serial, proxy("u1"), START, START + YEAR, claim_within=day))
    ledger.claim("2a", START)
    one, two = ledger.entries()
    late = START + day + timedelta(seconds=1)
    assert (one.claim_by, two.claim_by) == (START + day, START + day)
    assert [entry.unclaimed_too_long(at) for entry in (one, two) for at in (START + day, late)] == [
        *(False, True),
        *(False, False),
    ]
    assert [entry.in_force(at) for entry in (one, two) for at in (late, START + 2 * YEAR)] == [
        *(False, False),
        *(True, False),
    ]


def test_revoked_certificate_is_never_claimed(ledger: Ledger) -> None:
    """A certificate that is revoked before its first use stays unclaimed. The claim returns this entry."""
    ledger.record(new_entry("1f"))
    ledger.revoke("1f", START)
    entry = ledger.claim("1f", START)
    assert (entry.state, entry.claimed_at) == (LedgerState.REVOKED, None)
    assert admitted(ledger, START) == entry


def test_admission_is_recorded_for_claimed_certificates_in_force(ledger: Ledger) -> None:
    """Several proxies can be admitted at once, and unknown proxies are ignored."""
    for serial, uuid in (("1a", "u1"), ("1b", "u1"), ("1c", "u1"), ("2a", "u2"), ("3a", "u3")):
        ledger.record(new_entry(serial, uuid))
    for serial in ("1a", "1b", "2a", "3a"):
        ledger.claim(serial, START)
    ledger.revoke("1b", START)
    ledger.admit((proxy("u1"), proxy("u2"), proxy("u9")), START)
    assert [entry.serial for entry in ledger.entries() if entry.admitted_at == START] == ["1a", "2a"]
    assert [entry.serial for entry in ledger.entries_of(proxy("u1"))] == ["1a", "1b", "1c"]
    assert ledger.entries_of(proxy("u9")) == ()


def test_entries_of_many_proxies_are_the_union_of_the_entries_of_each(ledger: Ledger) -> None:
    """They are sorted by name and include unwritten stamps. Unknown and repeated names add no entry."""
    for number in range(12):
        ledger.record(new_entry(f"{number:x}", f"u{number % 10}"))
    ledger.claim("0", START)
    asked = [proxy(f"u{number}") for number in (*reversed(range(10)), 7, 20)]
    entries = ledger.entries_of_all(asked)
    assert entries == ledger.entries()
    assert [entry.claimed_at for entry in entries if entry.serial == "0"] == [START]
    assert ledger.entries_of_all(asked[9:12]) == (
        *ledger.entries_of(proxy("u0")),
        *ledger.entries_of(proxy("u7")),
    )
    assert ledger.entries_of_all(()) == ()


def test_entries_are_sorted_by_name_and_time(ledger: Ledger) -> None:
    """The order does not depend on the order of recording; a proxy may have several certificates."""
    later = START + timedelta(days=1)
    entries = [new_entry("b", "u1"), new_entry("a", "u1", later), new_entry("c", "u2")]
    for entry in reversed(entries):
        ledger.record(entry)
    assert ledger.entries() == tuple(entries)
    assert ledger.entry("d") is None


def test_unknown_serial_is_an_error_that_lists_existing_serials(ledger: Ledger) -> None:
    """The error lists serials with the same beginning, or the newest ones, or says that none exist."""
    with pytest.raises(
        RequestError, match=r"^serial ab is not in the ledger; proxy certificates have not been issued yet$"
    ):
        ledger.revoke("ab", START)
    ledger.record(new_entry("abcdef01", "u1"))
    ledger.record(new_entry("fe02", "u2"))
    with pytest.raises(RequestError) as alike:
        ledger.revoke("abcdef99", START)
    with pytest.raises(RequestError) as unlike:
        ledger.claim("7", START)
    known = "is not in the ledger; some serials in the ledger: abcdef01 (u1.shop.default)"
    assert str(alike.value) == f"serial abcdef99 {known}"
    assert str(unlike.value) == f"serial 7 {known}, fe02 (u2.shop.default)"
    with pytest.raises(
        RequestError, match=r"^serial 'u1.shop' is not a hexadecimal number, for example 3f9a02$"
    ):
        ledger.revoke("u1.shop", START)


@pytest.mark.parametrize("written", ["0a:BC:01", "0xabc01", "000ABC01", " abc01\n", "abc01"])
def test_serial_in_any_notation_can_be_revoked(written: str, ledger: Ledger) -> None:
    """OpenSSL and other tools write serials with colons, capitals, zeros or a prefix."""
    ledger.record(new_entry(serial_text(0xABC01)))
    assert read_serial(written) == "abc01"
    assert ledger.revoke(written, START).state is LedgerState.REVOKED


def test_serial_is_recorded_only_once(ledger: Ledger) -> None:
    """A second entry with the serial is refused and changes nothing."""
    ledger.record(new_entry("1f"))
    with pytest.raises(StateError, match=r"UNIQUE|serial 1f is given"):
        ledger.record(new_entry("1f", "u2"))
    assert ledger.entries() == (new_entry("1f"),)


def test_first_and_last_certificate_are_found_by_time_of_issue(ledger: Ledger) -> None:
    """The order of recording does not count.

    Of two certificates of one second, the lower serial is the first.
    """
    assert (ledger.first(), ledger.last_issued_at()) == (None, None)
    later = START + timedelta(days=1)
    for entry in (new_entry("c", at=later), new_entry("b"), new_entry("a")):
        ledger.record(entry)
    assert (ledger.first(), ledger.last_issued_at()) == ("a", later)


def test_first_recorded_ca_is_kept_until_it_is_changed(ledgers: Ledgers) -> None:
    """Only the first of two CAs is recorded, and a failed write records none."""
    first, second = ledgers.open(), ledgers.open()
    with ledgers.hindered():
        first.name_authority("aa")
        assert first.authority() is None
    second.name_authority("bb")
    first.name_authority("aa")
    assert (first.authority(), second.authority()) == ("bb", "bb")
    first.change_authority("cc")
    assert (first.authority(), second.authority()) == ("cc", "cc")
    with ledgers.hindered(), pytest.raises(StateError):
        first.change_authority("dd")


def test_signer_is_recorded_for_each_certificate(ledgers: Ledgers) -> None:
    """Old entries without a signer get the CA that is recorded first, whichever signs later."""
    ledger = ledgers.open()
    ledger.record(new_entry("a"))
    ledger.name_authority("aa")
    ledger.record(replace(new_entry("b"), signer="bb"))
    ledger.change_authority("bb")
    ledger.name_authority("bb")
    assert {entry.serial: entry.signer for entry in ledgers.open().entries()} == {"a": "aa", "b": "bb"}


def test_writes_of_one_ledger_are_seen_by_all(ledgers: Ledgers) -> None:
    """Records and revocations are seen at once, claims after they are written.

    A serial can be recorded once.
    """
    first, second = ledgers.open(), ledgers.open()
    first.record(new_entry("1a"))
    assert second.entries() == (new_entry("1a"),)
    with pytest.raises(StateError):
        second.record(new_entry("1a", "u2"))
    claimed = first.claim("1a", START)
    assert (second.entry("1a"), first.unwritten) == (new_entry("1a"), 1)
    first.admit((), START)
    assert (second.entry("1a"), first.unwritten) == (claimed, 0)
    revoked = second.revoke("1a", START)
    assert first.entry("1a") == first.claim("1a", START) == revoked


def test_first_written_stamp_wins_between_two_ledgers(ledgers: Ledgers) -> None:
    """An earlier stamp that is written later gives way, and no stamp is added to a revoked certificate."""
    first, second = ledgers.open(), ledgers.open()
    later = START + timedelta(hours=1)
    for serial in ("1a", "2a"):
        first.record(new_entry(serial))
    first.claim("1a", START)
    first.claim("2a", START)
    second.claim("1a", later)
    second.admit((), later)
    revoked = second.revoke("2a", later)
    first.write_unwritten()
    expected = (replace(new_entry("1a"), claimed_at=later), revoked)
    assert first.entries() == second.entries() == expected
    assert revoked == replace(new_entry("2a"), revoked_at=later)


def test_unwritten_stamps_count_in_their_ledger_and_are_written_later(ledgers: Ledgers) -> None:
    """Claims, admissions and revocations keep their times.

    A new certificate that cannot be written is not recorded.
    """
    first, second = ledgers.open(), ledgers.open()
    for serial, uuid in (("1a", "u1"), ("2a", "u2")):
        first.record(new_entry(serial, uuid))
    here = (
        replace(new_entry("1a"), claimed_at=START, admitted_at=START),
        replace(new_entry("2a", "u2"), revoked_at=START),
    )
    with ledgers.hindered():
        first.claim("1a", START)
        first.admit((proxy("u1"),), START)
        with pytest.raises(UnwrittenError, match=r"the revocation of 2a is not stored$") as exception_info:
            first.revoke("2a", START)
        with pytest.raises(StateError):
            first.record(new_entry("3a"))
        with pytest.raises(StateError):
            first.write_unwritten()
        assert (exception_info.value.entry, first.entries(), first.unwritten) == (here[1], here, 2)
        assert second.entries() == (new_entry("1a"), new_entry("2a", "u2"))
    first.admit((), START)
    assert first.unwritten == 2  # after a failure, only `write_unwritten` tries again
    first.write_unwritten()
    assert (second.entries(), first.unwritten) == (here, 0)


def test_process_that_dies_loses_only_unwritten_stamps(ledgers: Ledgers) -> None:
    """Its claim is lost, but the certificate that it issued is in the record."""
    dying = ledgers.open()
    dying.record(new_entry("1a"))
    dying.claim("1a", START)
    assert ledgers.open().entries() == (new_entry("1a"),)


def test_requested_term_and_way_of_joining_are_kept(ledgers: Ledgers) -> None:
    """The way of joining is one line of limited length. An entry without a requested term has none."""
    term = timedelta(days=7)
    asked = LedgerEntry.issued(
        "1a", proxy("u1"), START, START + term, term=term, joined_by="kind\nshown" * 50
    )
    assert (asked.joined_by[:12], len(asked.joined_by)) == ("kind shownki", MOST_WORDS)
    ledgers.open().record(asked)
    ledgers.open().record(new_entry("2a", "u2"))
    assert ledgers.open().entries() == (asked, new_entry("2a", "u2"))


def test_judge_of_a_new_entry_sees_all_entries_of_its_name(ledgers: Ledgers) -> None:
    """These include unwritten revocations and those of other processes. A refused entry is not recorded."""
    first, second = ledgers.open(), ledgers.open()
    for serial, uuid in (("1a", "u1"), ("2a", "u1"), ("3a", "u2")):
        first.record(new_entry(serial, uuid))
    second.revoke("1a", START)
    with ledgers.hindered(), suppress(UnwrittenError):
        first.revoke("2a", START)
    judged, refusing = list[tuple[str, LedgerState]](), True

    def judge(known: tuple[LedgerEntry, ...]) -> None:
        judged.extend((entry.serial, entry.state) for entry in known)
        if refusing:
            raise RequestError("not this one")

    with pytest.raises(RequestError):
        first.record(new_entry("4a", "u1"), judge)
    assert judged == [("1a", LedgerState.REVOKED), ("2a", LedgerState.REVOKED)]
    assert first.entry("4a") is second.entry("4a") is None
    refusing = False
    first.record(new_entry("4a", "u1"), judge)
    assert second.entry("4a") == new_entry("4a", "u1")
