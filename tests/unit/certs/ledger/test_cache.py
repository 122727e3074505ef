"""What a ledger costs whoever asks it again, and that nothing that others write is missed for it."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from certs.ledger import cache as seen
from certs.ledger import rows
from certs.ledger.contract import UnwrittenError
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.sqlite import SqliteLedger
from tests.unit.certs.ledger.entries import START, new_entry, proxy


@contextmanager
def statements(ledger: SqliteLedger) -> Iterator[list[str]]:
    """Collect what SQLite is asked meanwhile."""
    asked: list[str] = []
    ledger._connection.set_trace_callback(asked.append)
    yield asked
    ledger._connection.set_trace_callback(None)


def test_what_is_known_costs_no_statement(ledger: SqliteLedger) -> None:
    """Neither asked again nor claimed, nor after writes of its own: issued, claimed, admitted, revoked."""
    for serial, uuid in (("1a", "u1"), ("2a", "u2"), ("3a", "u3")):
        ledger.record(new_entry(serial, uuid))
    every = ledger.entries()
    with statements(ledger) as asked:
        assert tuple(ledger.entry(each.serial) for each in every) == every
        claimed = ledger.claim("1a", START)
        assert asked == []
    ledger.admit((proxy("u1"),), START)
    revoked = ledger.revoke("3a", START)
    ledger.record(new_entry("4a", "u4"))
    with statements(ledger) as asked:
        assert ledger.entry("1a") == replace(claimed, admitted_at=START)
        assert (ledger.entry("2a"), ledger.entry("3a")) == (every[1], revoked)
        assert asked == []


def test_what_many_have_done_is_read_and_written_in_few_statements(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each statement, and each row that is read, all other threads have a turn."""
    monkeypatch.setattr(rows, "AT_ONCE", 60)
    serials = {f"{n:x}a": f"u{n}" for n in range(100)}
    for serial, uuid in serials.items():
        ledger.record(new_entry(serial, uuid))
    ledger.entries()
    later = START + timedelta(seconds=1)
    for serial, uuid in serials.items():
        ledger.claim(serial, START if serial < "4" else later, f'from \u00fc\U0001f600 "{uuid}"')
    with statements(ledger) as asked:
        ledger.admit(map(proxy, serials.values()), later)

    changes = [each for each in asked if each.startswith("UPDATE")]
    assert len(changes) == 2 + 2, "claimed at two moments, admitted at one, 60 at a time"
    assert len(asked) < 20
    fresh = {each.serial: each for each in ledger.entries()}
    assert fresh == {
        serial: replace(
            new_entry(serial, uuid),
            claimed_at=START if serial < "4" else later,
            claimed_from=f'from \u00fc\U0001f600 "{uuid}"',
            admitted_at=later,
        )
        for serial, uuid in serials.items()
    }


def test_of_all_that_are_read_at_once_those_issued_last_are_kept(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the others one that is asked for: a ledger has those of proxies that are long gone."""
    monkeypatch.setattr(seen, "AT_ONCE", 2)
    days = {"1a": 3, "2a": 1, "3a": 2}
    for serial, day in days.items():
        ledger.record(new_entry(serial, at=START + timedelta(days=day)))
    assert len(ledger.entries()) == 3
    with statements(ledger) as asked:
        assert None not in (ledger.entry("1a"), ledger.entry("3a"))
        assert asked == []
        assert ledger.entry("2a") is not None
        assert asked != []


def test_what_another_writes_is_seen_at_the_next_call(ledger: SqliteLedger, state: Path) -> None:
    """Each time anew, and between writes of one's own; what they did not touch is read once more."""
    for serial in ("1a", "2a", "3a"):
        ledger.record(new_entry(serial))
    before = {each.serial: each for each in ledger.entries()}
    with SqliteLedger.open(state / "ledger.db") as other:
        for number, serial in enumerate(before):
            assert ledger.entry(serial) == before[serial]
            moment = START + timedelta(hours=number)
            revoked = other.revoke(serial, moment)
            assert ledger.entry(serial) == ledger.claim(serial, START) == revoked
            ledger.record(new_entry(f"{number}b"))
            assert ledger.entry(serial) == revoked
        ledger.entries()
        with statements(ledger) as asked:
            assert ledger.entry("1a") is not None
            assert asked == []


def test_a_write_that_others_take_back_is_never_seen(ledger: SqliteLedger, state: Path) -> None:
    """Nor is the one missed that comes in its place."""
    ledger.record(new_entry("1a"))
    other = sqlite3.connect(state / "ledger.db", isolation_level=None)
    revoke = "UPDATE proxy_certificates SET revoked_at = 1"
    other.execute("BEGIN IMMEDIATE")
    other.execute(revoke)
    assert ledger.entry("1a") == new_entry("1a")
    other.execute("ROLLBACK")
    assert ledger.entry("1a") == new_entry("1a")
    other.execute(revoke)
    other.close()
    assert (found := ledger.entry("1a")) is not None
    assert found.revoked_at is not None


def test_who_asks_waits_for_no_thread_that_writes(ledger: SqliteLedger) -> None:
    """What is known is answered, and what is noted meanwhile of the same certificate is not lost."""
    for serial in ("1a", "2a"):
        ledger.record(new_entry(serial))
    ledger.entries()
    ledger.claim("1a", START)
    writing, asked = threading.Event(), threading.Event()

    def held(statement: str) -> None:
        if statement == "COMMIT":
            writing.set()
            assert asked.wait(10)

    ledger._connection.set_trace_callback(held)
    with ThreadPoolExecutor(1) as executor:
        written = executor.submit(ledger.write_unwritten)
        assert writing.wait(10)
        assert ledger.entry("1a") == replace(new_entry("1a"), claimed_at=START)
        assert ledger.claim("2a", START) == replace(new_entry("2a"), claimed_at=START)
        asked.set()
        written.result()
    assert ledger.unwritten == 1
    ledger.write_unwritten()
    assert (ledger.unwritten, [each.claimed_at for each in ledger.entries()]) == (0, [START, START])


def test_with_a_write_ahead_log_nothing_is_taken_for_known(ledger: SqliteLedger, state: Path) -> None:
    """Somebody has changed the file to one: its header counts no transactions then."""
    ledger.record(new_entry("1a"))
    assert ledger.entry("1a") == new_entry("1a")
    other = sqlite3.connect(state / "ledger.db", isolation_level=None)
    assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    assert ledger.entry("1a") == new_entry("1a")
    other.execute("UPDATE proxy_certificates SET revoked_at = 1")
    assert (found := ledger.entry("1a")) is not None
    assert found.revoked_at is not None
    ledger.close()
    other.close()


def test_a_revocation_that_was_written_late_holds_while_others_lock(
    ledger: SqliteLedger, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though others wrote before it, so that the entry was to be read again."""
    monkeypatch.setattr("certs.ledger.sqlite.BUSY_SECONDS", 0.01)
    ledger.record(new_entry("1a"))
    other = sqlite3.connect(state / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnwrittenError):
        ledger.revoke("1a", START)
    other.execute("UPDATE proxy_certificates SET not_after = not_after + 1")
    other.execute("COMMIT")
    ledger.write_unwritten()
    other.execute("BEGIN EXCLUSIVE")
    found = ledger.entry("1a")
    other.close()
    assert found is not None
    assert found.revoked_at == START


@pytest.mark.parametrize("ask", ["entry", "claim"])
def test_a_revocation_that_is_written_just_now_is_not_missed(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    """Between looking the entry up and asking what is remembered of it, that may have been written down."""
    ledger.record(new_entry("1a"))
    known, current = ledger.entry("1a"), ledger._seen.current
    assert known is not None
    ledger._unwritten.note(known, Stamp.REVOKED, StampDetail.of(START))

    def writing_meanwhile(serial: str) -> LedgerEntry | None:
        found = current(serial)
        monkeypatch.undo()
        ledger.write_unwritten()
        return found

    monkeypatch.setattr(ledger._seen, "current", writing_meanwhile)
    found = ledger.entry("1a") if ask == "entry" else ledger.claim("1a", START)
    assert found is not None
    assert found.revoked_at == START


def test_many_proxies_are_asked_for_in_one_statement(ledger: SqliteLedger) -> None:
    """All who came in a tenth of a second of a storm, as they are admitted and as they are read again."""
    names = [proxy(f"u{number}") for number in range(5)]
    for number in range(5):
        ledger.record(new_entry(f"{number}a", f"u{number}"))
        ledger.claim(f"{number}a", START)
    with statements(ledger) as asked:
        ledger.admit(names, START)
        found = ledger.entries_of_all(names)
        assert sum(each.startswith("SELECT") for each in asked) == 2
    assert [each.admitted_at for each in found] == [START] * 5
