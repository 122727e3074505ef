"""Tests of the ledger's cache: few SQL statements, and every write of other processes is noticed."""

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
    """Collect the SQL statements of the ledger during the block."""
    asked: list[str] = []
    ledger._connection.set_trace_callback(asked.append)
    yield asked
    ledger._connection.set_trace_callback(None)


def test_known_entry_needs_no_statement(ledger: SqliteLedger) -> None:
    """Repeated lookups and claims, also after own writes, cause no SQL statement."""
    for serial, uuid in (("1a", "u1"), ("2a", "u2"), ("3a", "u3")):
        ledger.record(new_entry(serial, uuid))
    every = ledger.entries()
    with statements(ledger) as asked:
        assert tuple(ledger.entry(entry.serial) for entry in every) == every
        claimed = ledger.claim("1a", START)
        assert asked == []
    ledger.admit((proxy("u1"),), START)
    revoked = ledger.revoke("3a", START)
    ledger.record(new_entry("4a", "u4"))
    with statements(ledger) as asked:
        assert ledger.entry("1a") == replace(claimed, admitted_at=START)
        assert (ledger.entry("2a"), ledger.entry("3a")) == (every[1], revoked)
        assert asked == []


def test_stamps_of_many_proxies_are_read_and_written_in_few_statements(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other threads may run at each statement and each row that is read, so few statements save time."""
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

    changes = [item for item in asked if item.startswith("UPDATE")]
    assert len(changes) == 2 + 2, "claimed at two moments, admitted at one, 60 at a time"
    assert len(asked) < 20
    fresh = {entry.serial: entry for entry in ledger.entries()}
    assert fresh == {
        serial: replace(
            new_entry(serial, uuid),
            claimed_at=START if serial < "4" else later,
            claimed_from=f'from \u00fc\U0001f600 "{uuid}"',
            admitted_at=later,
        )
        for serial, uuid in serials.items()
    }


def test_cache_keeps_the_newest_of_many_entries(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old entries often belong to proxies that are gone. They are read again when they are requested."""
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


def test_write_of_another_process_is_seen_at_the_next_call(ledger: SqliteLedger, state: Path) -> None:
    """This is also true between own writes.

    Entries that the other process did not touch are read once more.
    """
    for serial in ("1a", "2a", "3a"):
        ledger.record(new_entry(serial))
    before = {entry.serial: entry for entry in ledger.entries()}
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


def test_write_that_another_process_rolls_back_is_never_seen(ledger: SqliteLedger, state: Path) -> None:
    """The write that follows the rollback is seen."""
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
    assert (entry := ledger.entry("1a")) is not None
    assert entry.revoked_at is not None


def test_lookup_does_not_wait_for_a_thread_that_writes(ledger: SqliteLedger) -> None:
    """Known entries are returned during the write, and stamps that are recorded meanwhile are not lost."""
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
    assert (ledger.unwritten, [entry.claimed_at for entry in ledger.entries()]) == (0, [START, START])


def test_cache_is_not_used_for_a_file_with_a_write_ahead_log(ledger: SqliteLedger, state: Path) -> None:
    """The header of such a file does not count transactions, so writes of other processes could be missed."""
    ledger.record(new_entry("1a"))
    assert ledger.entry("1a") == new_entry("1a")
    other = sqlite3.connect(state / "ledger.db", isolation_level=None)
    assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    assert ledger.entry("1a") == new_entry("1a")
    other.execute("UPDATE proxy_certificates SET revoked_at = 1")
    assert (entry := ledger.entry("1a")) is not None
    assert entry.revoked_at is not None
    ledger.close()
    other.close()


def test_revocation_written_late_holds_while_another_process_locks_the_file(
    ledger: SqliteLedger, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process wrote first, so that the entry had to be read again."""
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
    entry = ledger.entry("1a")
    other.close()
    assert entry is not None
    assert entry.revoked_at == START


@pytest.mark.parametrize("ask", ["entry", "claim"])
def test_revocation_written_during_a_lookup_is_not_missed(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    """The stamp may move from memory to the file between the two steps of a lookup."""
    ledger.record(new_entry("1a"))
    known, current = ledger.entry("1a"), ledger._seen.current
    assert known is not None
    ledger._unwritten.note(known, Stamp.REVOKED, StampDetail.shorten(START))

    def writing_meanwhile(serial: str) -> LedgerEntry | None:
        ledger_entry = current(serial)
        monkeypatch.undo()
        ledger.write_unwritten()
        return ledger_entry

    monkeypatch.setattr(ledger._seen, "current", writing_meanwhile)
    entry = ledger.entry("1a") if ask == "entry" else ledger.claim("1a", START)
    assert entry is not None
    assert entry.revoked_at == START


def test_entries_of_many_proxies_are_read_in_one_statement(ledger: SqliteLedger) -> None:
    """A reconnection storm admits many proxies in a tenth of a second."""
    names = [proxy(f"u{number}") for number in range(5)]
    for number in range(5):
        ledger.record(new_entry(f"{number}a", f"u{number}"))
        ledger.claim(f"{number}a", START)
    with statements(ledger) as asked:
        ledger.admit(names, START)
        entries = ledger.entries_of_all(names)
        assert sum(item.startswith("SELECT") for item in asked) == 2
    assert [entry.admitted_at for entry in entries] == [START] * 5
