"""The contract of ledgers: what every one of them must do, and what two on one record do to each other.

Whoever brings another ledger puts it beside the two that are run here.
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
from certs.ledger.contract import Ledger, UnwrittenError
from certs.ledger.entry import MOST_WORDS, SEEN_EVERY, LedgerEntry, LedgerState
from certs.ledger.sqlite import SqliteLedger
from meshwright.mesh.names import ProxyUuid
from tests.unit.certs.ledger.entries import START, YEAR, new_entry, proxy
from tests.unit.certs.ledger.memory import MemoryLedger, Record


class Ledgers(Protocol):
    """Ledgers of one record."""

    def open(self) -> Ledger:
        """Open another one, as another process would; it is closed with the test."""

    def hindered(self) -> AbstractContextManager[None]:
        """Keep those that are open from writing."""


@dataclass
class SqliteLedgers:
    """Ledgers of one file."""

    path: Path
    stack: ExitStack
    opened: list[SqliteLedger] = field(default_factory=list)

    def open(self) -> Ledger:
        """Open another one."""
        self.opened.append(self.stack.enter_context(SqliteLedger.open(self.path)))
        return self.opened[-1]

    @contextmanager
    def hindered(self) -> Iterator[None]:
        """Let SQLite refuse to write."""
        self._refuse("ON")
        yield
        self._refuse("OFF")

    def _refuse(self, word: str) -> None:
        for each in self.opened:
            each._connection.execute(f"PRAGMA query_only = {word}")


@dataclass
class MemoryLedgers:
    """Ledgers of one record in memory."""

    record: Record = field(default_factory=Record)

    def open(self) -> Ledger:
        """Open another one."""
        return MemoryLedger(self.record)

    @contextmanager
    def hindered(self) -> Iterator[None]:
        """Let the record be full."""
        self.record.full = True
        yield
        self.record.full = False


@pytest.fixture(params=["sqlite", "memory"])
def ledgers(request: pytest.FixtureRequest, state: Path) -> Iterator[Ledgers]:
    """Return ledgers of an empty record, of each kind in turn."""
    with ExitStack() as stack:
        yield SqliteLedgers(state / "ledger.db", stack) if request.param == "sqlite" else MemoryLedgers()


@pytest.fixture
def ledger(ledgers: Ledgers) -> Ledger:
    """Return one."""
    return ledgers.open()


def admitted(ledger: Ledger, now: datetime) -> LedgerEntry | None:
    """Admit the proxy of the first entry, and return that."""
    ledger.admit((proxy("u1"),), now)
    return ledger.entry("1f")


def test_a_certificate_goes_from_issued_to_claimed_to_revoked(ledger: Ledger) -> None:
    """Each step stands in its own column with the moment of its first time, and steps repeat safely."""
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


def test_what_is_said_with_a_stamp_is_kept_of_its_first_time(ledgers: Ledgers) -> None:
    """From where it was claimed and why it is revoked: one line each, and not of any length."""
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


def test_that_it_is_in_use_is_noted_now_and_then(ledgers: Ledgers) -> None:
    """Of what was claimed and is not revoked, once in a quarter of an hour; it is written with the rest."""
    first, second = ledgers.open(), ledgers.open()
    for serial in ("1a", "2a", "3a"):
        first.record(new_entry(serial))
    soon, later, last = (START + SEEN_EVERY * each for each in (0.5, 1, 2))
    assert first.see("1a", later).last_seen is None
    for serial in ("2a", "3a"):
        assert first.claim(serial, START).last_seen == START
    first.admit((), START)
    second.revoke("3a", START)
    assert (first.see("2a", soon).last_seen, first.see("3a", later).last_seen) == (START, START)
    assert (first.unwritten, first.see("2a", later).last_seen, first.unwritten) == (0, later, 1)
    second.see("2a", last)
    second.write_unwritten()
    first.write_unwritten()
    assert [each.last_seen for each in first.entries()] == [None, last, START]


def test_the_deadline_of_a_claim_is_kept(ledger: Ledger) -> None:
    """It concerns what nobody has claimed; whoever came in time is not concerned any more."""
    day = timedelta(days=1)
    for serial in ("1a", "2a"):
        ledger.record(LedgerEntry.issued(serial, proxy("u1"), START, START + YEAR, claim_within=day))
    ledger.claim("2a", START)
    one, two = ledger.entries()
    late = START + day + timedelta(seconds=1)
    assert (one.claim_by, two.claim_by) == (START + day, START + day)
    assert [each.unclaimed_too_long(at) for each in (one, two) for at in (START + day, late)] == [
        *(False, True),
        *(False, False),
    ]
    assert [each.in_force(at) for each in (one, two) for at in (late, START + 2 * YEAR)] == [
        *(False, False),
        *(True, False),
    ]


def test_a_revoked_certificate_is_never_claimed(ledger: Ledger) -> None:
    """Revoked before its first use, it stays unclaimed, and whoever claims it sees why."""
    ledger.record(new_entry("1f"))
    ledger.revoke("1f", START)
    entry = ledger.claim("1f", START)
    assert (entry.state, entry.claimed_at) == (LedgerState.REVOKED, None)
    assert admitted(ledger, START) == entry


def test_admissions_are_noted_of_what_a_proxy_has_claimed(ledger: Ledger) -> None:
    """Of all its certificates in force, of several proxies at once; unknown proxies are passed over."""
    for serial, uuid in (("1a", "u1"), ("1b", "u1"), ("1c", "u1"), ("2a", "u2"), ("3a", "u3")):
        ledger.record(new_entry(serial, uuid))
    for serial in ("1a", "1b", "2a", "3a"):
        ledger.claim(serial, START)
    ledger.revoke("1b", START)
    ledger.admit((proxy("u1"), proxy("u2"), proxy("u9")), START)
    assert [entry.serial for entry in ledger.entries() if entry.admitted_at == START] == ["1a", "2a"]
    assert [entry.serial for entry in ledger.entries_of(proxy("u1"))] == ["1a", "1b", "1c"]
    assert ledger.entries_of(proxy("u9")) == ()


def test_the_entries_of_many_are_those_of_each(ledger: Ledger) -> None:
    """Sorted by name, with what is only remembered yet; unknown and repeated names add nothing."""
    for number in range(12):
        ledger.record(new_entry(f"{number:x}", f"u{number % 10}"))
    ledger.claim("0", START)
    asked = [proxy(f"u{number}") for number in (*reversed(range(10)), 7, 20)]
    found = ledger.entries_of_all(asked)
    assert found == ledger.entries()
    assert [each.claimed_at for each in found if each.serial == "0"] == [START]
    assert ledger.entries_of_all(asked[9:12]) == (
        *ledger.entries_of(proxy("u0")),
        *ledger.entries_of(proxy("u7")),
    )
    assert ledger.entries_of_all(()) == ()


def test_entries_are_sorted_by_name_then_time(ledger: Ledger) -> None:
    """The order never depends on the order of recording; a proxy may have several certificates."""
    later = START + timedelta(days=1)
    entries = [new_entry("b", "u1"), new_entry("a", "u1", later), new_entry("c", "u2")]
    for entry in reversed(entries):
        ledger.record(entry)
    assert ledger.entries() == tuple(entries)
    assert ledger.entry("d") is None


def test_a_serial_nobody_knows_is_an_error_with_what_would_be_right(ledger: Ledger) -> None:
    """The error lists serials that begin alike, else the newest, else says that there are none."""
    with pytest.raises(
        RequestError, match=r"^serial ab is not in the ledger; no proxy certificate has been issued yet$"
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
    with pytest.raises(RequestError, match=r"^serial 'u1.shop' is not a hexadecimal number, such as 3f9a02$"):
        ledger.revoke("u1.shop", START)


@pytest.mark.parametrize("written", ["0a:BC:01", "0xabc01", "000ABC01", " abc01\n", "abc01"])
def test_a_serial_is_revoked_however_it_was_pasted(written: str, ledger: Ledger) -> None:
    """Openssl's and other tools' ways of writing a serial name the same certificate."""
    ledger.record(new_entry(serial_text(0xABC01)))
    assert read_serial(written) == "abc01"
    assert ledger.revoke(written, START).state is LedgerState.REVOKED


def test_a_serial_is_recorded_once(ledger: Ledger) -> None:
    """A second entry for a serial is refused and changes nothing."""
    ledger.record(new_entry("1f"))
    with pytest.raises(StateError, match=r"UNIQUE|serial 1f is given"):
        ledger.record(new_entry("1f", "u2"))
    assert ledger.entries() == (new_entry("1f"),)


def test_the_first_and_the_last_that_were_issued(ledger: Ledger) -> None:
    """By time of issue, not of recording; of one second the one whose serial sorts first is the first."""
    assert (ledger.first(), ledger.last_issued_at()) == (None, None)
    later = START + timedelta(days=1)
    for entry in (new_entry("c", at=later), new_entry("b"), new_entry("a")):
        ledger.record(entry)
    assert (ledger.first(), ledger.last_issued_at()) == ("a", later)


def test_the_ca_is_named_once(ledgers: Ledgers) -> None:
    """Whoever names it first; without room for that nobody has."""
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


def test_who_has_signed_is_noted_of_each_certificate(ledgers: Ledgers) -> None:
    """Of one from before signers were noted it is the CA that is named then, whoever signs later."""
    ledger = ledgers.open()
    ledger.record(new_entry("a"))
    ledger.name_authority("aa")
    ledger.record(replace(new_entry("b"), signer="bb"))
    ledger.change_authority("bb")
    ledger.name_authority("bb")
    assert {each.serial: each.signer for each in ledgers.open().entries()} == {"a": "aa", "b": "bb"}


def test_what_one_writes_all_see(ledgers: Ledgers) -> None:
    """Records and revocations at once, claims once they are written; a serial is given once."""
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


def test_of_two_who_stamp_the_first_to_write_has_it(ledgers: Ledgers) -> None:
    """Whoever was earlier and writes later takes over what stands there; nothing goes on a revoked one."""
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


def test_what_cannot_be_written_counts_here_and_is_written_later(ledgers: Ledgers) -> None:
    """Claims, admissions and revocations, with their moments; what is issued is not, and is not there."""
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
        with pytest.raises(UnwrittenError, match=r"the revocation of 2a is not stored$") as said:
            first.revoke("2a", START)
        with pytest.raises(StateError):
            first.record(new_entry("3a"))
        with pytest.raises(StateError):
            first.write_unwritten()
        assert (said.value.entry, first.entries(), first.unwritten) == (here[1], here, 2)
        assert second.entries() == (new_entry("1a"), new_entry("2a", "u2"))
    first.admit((), START)
    assert first.unwritten == 2  # who waits for this would wait in vain, as long as nobody has tried
    first.write_unwritten()
    assert (second.entries(), first.unwritten) == (here, 0)


def test_a_process_that_dies_loses_no_more_than_what_it_only_remembered(ledgers: Ledgers) -> None:
    """Its claim; what it issued is known to whoever comes next."""
    dying = ledgers.open()
    dying.record(new_entry("1a"))
    dying.claim("1a", START)
    assert ledgers.open().entries() == (new_entry("1a"),)


def test_what_was_asked_for_and_how_its_holder_came_is_kept(ledgers: Ledgers) -> None:
    """In one line; of who asked for nothing it is nothing."""
    term = timedelta(days=7)
    asked = LedgerEntry.issued(
        "1a", proxy("u1"), START, START + term, term=term, joined_by="kind\nshown" * 50
    )
    assert (asked.joined_by[:12], len(asked.joined_by)) == ("kind shownki", MOST_WORDS)
    ledgers.open().record(asked)
    ledgers.open().record(new_entry("2a", "u2"))
    assert ledgers.open().entries() == (asked, new_entry("2a", "u2"))


def test_what_is_recorded_is_judged_by_all_that_is_known_of_its_name(ledgers: Ledgers) -> None:
    """A revocation that is only remembered counts, and one of another process; else it is not there."""
    first, second = ledgers.open(), ledgers.open()
    for serial, uuid in (("1a", "u1"), ("2a", "u1"), ("3a", "u2")):
        first.record(new_entry(serial, uuid))
    second.revoke("1a", START)
    with ledgers.hindered(), suppress(UnwrittenError):
        first.revoke("2a", START)
    judged, refusing = list[tuple[str, LedgerState]](), True

    def judge(known: tuple[LedgerEntry, ...]) -> None:
        judged.extend((each.serial, each.state) for each in known)
        if refusing:
            raise RequestError("not this one")

    with pytest.raises(RequestError):
        first.record(new_entry("4a", "u1"), judge)
    assert judged == [("1a", LedgerState.REVOKED), ("2a", LedgerState.REVOKED)]
    assert first.entry("4a") is second.entry("4a") is None
    refusing = False
    first.record(new_entry("4a", "u1"), judge)
    assert second.entry("4a") == new_entry("4a", "u1")
