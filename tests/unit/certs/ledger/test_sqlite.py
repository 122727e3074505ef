"""Tests of the ledger in a SQLite file: schemas, concurrent processes, locks and invalid files."""

import multiprocessing
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from certs.errors import StateError
from certs.ledger import file
from certs.ledger.contract import UnwrittenError
from certs.ledger.entry import LedgerEntry
from certs.ledger.sqlite import SqliteLedger
from certs.state.database import BUSY_SECONDS
from tests.unit.certs.ledger.entries import START, YEAR, new_entry, proxy

DAY = timedelta(days=1)


def test_ledger_of_schema_1_gets_admissions_for_proxies_that_had_connected(state: Path) -> None:
    """The schema is updated. A proxy that had not connected must connect before it counts as admitted."""
    state.mkdir(exist_ok=True)
    path = state / "ledger.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "schema_2.sql").read_text())
    connection.executescript(
        "DROP INDEX proxy_certificates_by_name; UPDATE proxy_certificates SET admitted_at = NULL;"
        "PRAGMA user_version = 1"
    )
    connection.close()
    one, two = START + timedelta(hours=1), START + timedelta(hours=4)
    for _ in range(2):
        with SqliteLedger.open(path) as ledger:
            assert [(entry.serial, entry.admitted_at) for entry in ledger.entries()] == [
                *(("1a", one), ("1b", None), ("2a", two), ("3a", None)),
            ]


def test_ledger_of_schema_2_opens_with_all_its_entries(state: Path) -> None:
    """Schema 2 has no deadlines, addresses and reasons; they are kept from then on."""
    state.mkdir(exist_ok=True)
    path = state / "ledger.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "schema_2.sql").read_text())
    connection.close()
    hours = [START + timedelta(hours=number) for number in range(25)]
    before = (
        replace(new_entry("1a", "u1"), claimed_at=hours[1], admitted_at=hours[2]),
        new_entry("1b", "u1", hours[24]),
        replace(new_entry("2a", "u2", hours[2]), claimed_at=hours[4]),
        replace(new_entry("3a", "u3", hours[3]), revoked_at=hours[5]),
    )
    with SqliteLedger.open(path) as ledger:
        assert (ledger.entries(), ledger.authority(), ledger.first()) == (before, "aa", "1a")
        ledger.claim("1b", hours[24], "10.0.0.1:5")
        ledger.see("2a", hours[24])
        revoked = ledger.revoke("1a", hours[24], "stolen")
    with SqliteLedger.open(path) as ledger:
        assert ledger.entries() == (
            replace(before[0], revoked_at=hours[24], revoked_why="stolen"),
            replace(before[1], claimed_at=hours[24], claimed_from="10.0.0.1:5"),
            replace(before[2], seen_at=hours[24]),
            before[3],
        )
        assert ledger.entry("1a") == revoked


def test_ledger_of_schema_3_gets_terms_for_shorter_validities(state: Path) -> None:
    """Schema 3 has no terms.

    Whole days below the usual validity were requested; longer ones and those cut by the CA's end are not.
    """
    state.mkdir(exist_ok=True)
    path = state / "ledger.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "schema_3.sql").read_text())
    connection.close()
    days = {"1a": None, "2a": 7, "2b": None, "3a": None, "4a": None, "5a": 1}
    for _ in range(2):
        with SqliteLedger.open(path) as ledger:
            entries = {entry.serial: entry for entry in ledger.entries()}
            terms = {serial: entry.term and entry.term.days for serial, entry in entries.items()}
            assert (terms, {entry.joined_by for entry in entries.values()}) == (days, {""})
            assert ledger.authority() == "aa"
    hour = timedelta(hours=1)
    assert entries["2a"] == replace(
        LedgerEntry.issued("2a", proxy("u2"), START + hour, START + hour + 7 * DAY, 2 * DAY, "aa", 7 * DAY),
        claimed_at=START + 2 * hour,
        claimed_from="10.0.0.2:4711",
        seen_at=START + 5 * hour,
    )
    assert (entries["5a"].revoked_at, entries["5a"].revoked_why) == (START + 6 * hour, "stolen")


def test_ledger_files_are_private_and_entries_persist(state: Path) -> None:
    """All files have mode 0600, and a second opening returns the same entries."""
    path = state / "ledger.db"
    with SqliteLedger.open(path) as ledger:
        ledger.record(new_entry("1f"))
        modes = {file.name: file.stat().st_mode & 0o777 for file in state.iterdir()}
    beside = ("", "-journal", ".lock", ".revocations", ".revocations.lock")
    assert modes == dict.fromkeys([f"ledger.db{item}" for item in beside], 0o600)
    with SqliteLedger.open(path) as ledger:
        assert ledger.entries() == (new_entry("1f"),)


def write_many(path: Path, prefix: str, count: int) -> None:
    """Open the ledger in another process; record entries, and claim one that all processes claim."""
    file._PATIENCE_SECONDS = BUSY_SECONDS  # type: ignore[misc]  # here waits no event loop
    with SqliteLedger.open(path) as ledger:
        for number in range(count):
            ledger.record(new_entry(f"{prefix}{number:x}"))
            ledger.claim("f", START + timedelta(seconds=number))


def test_two_processes_can_write_at_the_same_time(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry is lost and no process gets an error about a locked file, while a third one reads."""
    monkeypatch.setattr(file, "_PATIENCE_SECONDS", BUSY_SECONDS)  # a slow machine must not fail the test
    path = state / "ledger.db"
    spawn = multiprocessing.get_context("spawn")
    with SqliteLedger.open(path) as ledger:
        ledger.record(new_entry("f"))
        processes = [spawn.Process(target=write_many, args=(path, prefix, 50)) for prefix in "ab"]
        for process in processes:
            process.start()
        while any(process.is_alive() for process in processes):
            assert ledger.entry("f") is not None
            processes[0].join(0.01)
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0, 0]
        assert {entry.serial for entry in ledger.entries()} == {
            "f",
            *(f"{prefix}{number:x}" for prefix in "ab" for number in range(50)),
        }
        assert ledger.claim("f", START + YEAR).claimed_at == START


def test_files_that_are_no_ledger_are_refused_unchanged(tmp_path: Path) -> None:
    """Garbage, another database, a newer schema and a directory have an error message each."""
    garbage, other, newer, folder = (tmp_path / name for name in ("garbage", "other", "newer", "folder"))
    garbage.write_bytes(b"this is no database, and long enough to be looked at as one" * 100)
    folder.mkdir()
    for path, statement in ((other, "CREATE TABLE t (a)"), (newer, "PRAGMA user_version = 7")):
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()
    before = garbage.read_bytes(), other.read_bytes()
    sentences = []
    for path in (garbage, other, newer, folder):
        with pytest.raises(StateError) as refused:
            SqliteLedger.open(path)
        sentences.append(str(refused.value))
    assert sentences == [
        f"ledger {garbage} cannot be used: file is not a database",
        f"{other} is not a ledger but another database; move it to another place",
        (
            f"ledger {newer} was written by a newer version of Meshwright (it has schema 7, this "
            "version supports schemas up to 4); run the newer version, or restore a backup"
        ),
        f"cannot open ledger {folder}: Is a directory",
    ]
    assert (garbage.read_bytes(), other.read_bytes()) == before


def test_closing_waits_for_a_running_statement(ledger: SqliteLedger) -> None:
    """Closing a connection during a statement of another thread would crash the process.

    A closed ledger raises StateError.
    """
    with ThreadPoolExecutor(1) as executor:
        with ledger._statements() as connection:
            closing = executor.submit(ledger.close)
            assert wait([closing], 0.05).not_done
            assert connection.execute("SELECT 1").fetchone() == (1,)
        closing.result()
    with pytest.raises(StateError, match="closed"):
        ledger.entries()


@contextmanager
def locked(path: Path, how: str) -> Iterator[None]:
    """Lock the file against writers, or also against readers."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(f"BEGIN {how}")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the wait for other processes, because the lock is never released in these tests."""
    monkeypatch.setattr("certs.ledger.sqlite.BUSY_SECONDS", 0.01)


@pytest.mark.usefixtures("impatient")
def test_claims_and_admissions_during_a_lock_count_and_are_written_later(
    ledger: SqliteLedger, state: Path
) -> None:
    """They keep their times. Another process sees them after they are written."""
    later = START + timedelta(minutes=1)
    for serial, uuid in (("1a", "u1"), ("2a", "u2")):
        ledger.record(new_entry(serial, uuid))
    expected = replace(new_entry("1a"), claimed_at=START, admitted_at=later)
    with locked(state / "ledger.db", "IMMEDIATE"):
        assert ledger.claim("1a", START).claimed_at == START
        assert ledger.claim("1a", later).claimed_at == START
        ledger.admit((proxy("u1"), proxy("u2")), later)
        assert ledger.entries() == (expected, new_entry("2a", "u2"))
        assert (ledger.entry("1a"), ledger.entries_of(proxy("u1")), ledger.unwritten) == (
            expected,
            (expected,),
            1,
        )
        with pytest.raises(StateError, match="database is locked"):
            ledger.write_unwritten()
        with pytest.raises(StateError, match="database is locked"):
            ledger.record(new_entry("3a"))
        ledger.admit((proxy("u2"),), later)
    with SqliteLedger.open(state / "ledger.db") as other:
        assert other.entry("1a") == new_entry("1a")
        ledger.write_unwritten()
        assert ledger.unwritten == 0
        assert other.entries() == ledger.entries() == (expected, new_entry("2a", "u2"))


@pytest.mark.usefixtures("impatient")
def test_revocation_during_a_lock_is_in_force_and_reported_as_unwritten(
    ledger: SqliteLedger, state: Path
) -> None:
    """A later claim, or a claim that is written with the revocation, does not undo it."""
    ledger.record(new_entry("1a"))
    expected = replace(new_entry("1a"), claimed_at=START, revoked_at=START)
    with locked(state / "ledger.db", "IMMEDIATE"):
        ledger.claim("1a", START)
        with pytest.raises(UnwrittenError) as exception_info:
            ledger.revoke("1A", START)
        assert str(exception_info.value) == (
            f"ledger {state}/ledger.db cannot be written (database is locked): the "
            "revocation of 1a is not stored"
        )
        assert (
            exception_info.value.entry == expected == ledger.entry("1a") == ledger.claim("1a", START + YEAR)
        )
    ledger.close()
    with SqliteLedger.open(state / "ledger.db") as again:
        assert again.entries() == (expected,)


def test_revocation_holds_while_the_ledger_file_is_missing(ledger: SqliteLedger, state: Path) -> None:
    """It is reported as not stored, and is written when the file is restored."""
    path, aside = state / "ledger.db", state / "aside"
    ledger.record(new_entry("1f"))
    assert ledger.entry("1f") is not None
    path.rename(aside)
    with pytest.raises(UnwrittenError, match="the revocation of 1f is not stored") as unkept:
        ledger.revoke("1f", START, "stolen")
    entry = ledger.entry("1f")
    assert entry is not None
    assert (entry.state, entry, ledger.unwritten) == ("revoked", unkept.value.entry, 1)
    aside.rename(path)
    ledger.write_unwritten()
    with SqliteLedger.open(path) as again:
        assert again.entries() == (entry,)


def test_entry_read_before_a_lock_is_known_during_the_lock(ledger: SqliteLedger, state: Path) -> None:
    """The entry has its later claim or revocation. An entry that was not read before raises StateError."""
    for serial in ("1a", "2a", "3a"):
        ledger.record(new_entry(serial))
    assert ledger.entry("1a") == new_entry("1a")
    claimed, revoked = ledger.claim("1a", START), ledger.revoke("2a", START)
    with locked(state / "ledger.db", "EXCLUSIVE"):
        assert (ledger.entry("1a"), ledger.entry("2a")) == (claimed, revoked)
        with pytest.raises(StateError, match="database is locked"):
            ledger.entry("3a")
    ledger.close()
    with pytest.raises(StateError, match="closed"):
        ledger.entry("1a")
