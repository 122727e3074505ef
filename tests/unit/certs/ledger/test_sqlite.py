"""The ledger in a file: its schema, two processes at once, locks, and files that are no ledger."""

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


def test_a_ledger_of_before_admissions_admits_whoever_was_there(state: Path) -> None:
    """Its schema is brought up to date; who had connected goes on, who had not must show itself."""
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
            assert [(each.serial, each.admitted_at) for each in ledger.entries()] == [
                *(("1a", one), ("1b", None), ("2a", two), ("3a", None)),
            ]


def test_a_ledger_of_schema_2_opens_with_all_that_is_in_it(state: Path) -> None:
    """Written by a program that knew no deadlines, addresses and reasons; from then on they are kept."""
    state.mkdir(exist_ok=True)
    path = state / "ledger.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "schema_2.sql").read_text())
    connection.close()
    hours = [START + timedelta(hours=each) for each in range(25)]
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


def test_a_ledger_of_schema_3_knows_what_shorter_lives_were_asked_for(state: Path) -> None:
    """It was not noted: whole days, fewer than usual; not a longer life, nor one that its CA has cut."""
    state.mkdir(exist_ok=True)
    path = state / "ledger.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "schema_3.sql").read_text())
    connection.close()
    days = {"1a": None, "2a": 7, "2b": None, "3a": None, "4a": None, "5a": 1}
    for _ in range(2):
        with SqliteLedger.open(path) as ledger:
            found = {each.serial: each for each in ledger.entries()}
            terms = {serial: each.term and each.term.days for serial, each in found.items()}
            assert (terms, {each.joined_by for each in found.values()}) == (days, {""})
            assert ledger.authority() == "aa"
    hour = timedelta(hours=1)
    assert found["2a"] == replace(
        LedgerEntry.issued("2a", proxy("u2"), START + hour, START + hour + 7 * DAY, 2 * DAY, "aa", 7 * DAY),
        claimed_at=START + 2 * hour,
        claimed_from="10.0.0.2:4711",
        seen_at=START + 5 * hour,
    )
    assert (found["5a"].revoked_at, found["5a"].revoked_why) == (START + 6 * hour, "stolen")


def test_it_is_private_and_outlives_its_process(state: Path) -> None:
    """All files are 0600, whatever the umask, and entries and schema come back."""
    path = state / "ledger.db"
    with SqliteLedger.open(path) as ledger:
        ledger.record(new_entry("1f"))
        modes = {file.name: file.stat().st_mode & 0o777 for file in state.iterdir()}
    beside = ("", "-journal", ".lock", ".revocations", ".revocations.lock")
    assert modes == dict.fromkeys([f"ledger.db{each}" for each in beside], 0o600)
    with SqliteLedger.open(path) as ledger:
        assert ledger.entries() == (new_entry("1f"),)


def write_many(path: Path, prefix: str, count: int) -> None:
    """Open the ledger in a process of its own; record entries, and claim one that all processes claim."""
    file._PATIENCE_SECONDS = BUSY_SECONDS  # type: ignore[misc]  # here waits no event loop
    with SqliteLedger.open(path) as ledger:
        for number in range(count):
            ledger.record(new_entry(f"{prefix}{number:x}"))
            ledger.claim("f", START + timedelta(seconds=number))


def test_two_processes_write_at_once(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost and nobody is told that the file is locked, while a third reads."""
    monkeypatch.setattr(file, "_PATIENCE_SECONDS", BUSY_SECONDS)  # a busy machine is not what is tested
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


def test_files_that_are_no_ledger_are_refused_untouched(tmp_path: Path) -> None:
    """Garbage, another database, and a newer schema each get one sentence, and stay as they were."""
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


def test_closing_waits_for_a_thread_that_is_at_work(ledger: SqliteLedger) -> None:
    """A connection closed under another thread's statement ends the process; then nothing can be asked."""
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
    """Keep others from writing to a ledger, or from reading too."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(f"BEGIN {how}")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait for another process as long as who revokes or issues does: it is in vain here."""
    monkeypatch.setattr("certs.ledger.sqlite.BUSY_SECONDS", 0.01)


@pytest.mark.usefixtures("impatient")
def test_what_cannot_be_written_counts_and_is_written_later(ledger: SqliteLedger, state: Path) -> None:
    """Claims and admissions, with the moments at which they were; whoever else reads sees them then."""
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
def test_a_revocation_that_cannot_be_written_is_in_force_and_said(ledger: SqliteLedger, state: Path) -> None:
    """A claim that comes late does not undo it, nor does a claim that was to be written with it."""
    ledger.record(new_entry("1a"))
    expected = replace(new_entry("1a"), claimed_at=START, revoked_at=START)
    with locked(state / "ledger.db", "IMMEDIATE"):
        ledger.claim("1a", START)
        with pytest.raises(UnwrittenError) as said:
            ledger.revoke("1A", START)
        assert str(said.value) == (
            f"ledger {state}/ledger.db cannot be written (database is locked): the "
            "revocation of 1a is not stored"
        )
        assert said.value.entry == expected == ledger.entry("1a") == ledger.claim("1a", START + YEAR)
    ledger.close()
    with SqliteLedger.open(state / "ledger.db") as again:
        assert again.entries() == (expected,)


def test_a_revocation_holds_though_the_file_was_taken_away(ledger: SqliteLedger, state: Path) -> None:
    """Nobody can read it then; it is said not to be kept, and is written once the file is there again."""
    path, aside = state / "ledger.db", state / "aside"
    ledger.record(new_entry("1f"))
    assert ledger.entry("1f") is not None
    path.rename(aside)
    with pytest.raises(UnwrittenError, match="the revocation of 1f is not stored") as unkept:
        ledger.revoke("1f", START, "stolen")
    found = ledger.entry("1f")
    assert found is not None
    assert (found.state, found, ledger.unwritten) == ("revoked", unkept.value.entry, 1)
    aside.rename(path)
    ledger.write_unwritten()
    with SqliteLedger.open(path) as again:
        assert again.entries() == (found,)


def test_an_entry_that_was_looked_up_is_known_while_others_lock_it(ledger: SqliteLedger, state: Path) -> None:
    """As it is by now: claimed, or revoked; one that was not is an error, and never an entry."""
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
