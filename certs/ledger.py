"""The ledger of proxy certificates: which were issued, claimed, admitted and revoked.

One SQLite file in the state directory, shared by the server and the commands beside it. What becomes of a
certificate is a stamp on its row. A stamp is remembered, counts from then on, and is written with others; one
that cannot be written (the disk is full, or read-only) is written when it can be.
"""

import enum
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from certs.errors import RequestError, StateError, UnwrittenError
from certs.ledger_file import BUSY_SECONDS, GIVE_UP_PAGES, explained, open_file, waiting
from certs.serial import read_serial
from mesh.identity import ProxyName
from mesh.names import ProxyUuid

_SHOWN: Final = 5

_SELECT: Final = (
    "SELECT serial, common_name, uuid, issued_at, not_after, claimed_at, revoked_at, admitted_at "
    "FROM proxy_certificates "
)


class LedgerState(enum.StrEnum):
    """How far a certificate has come: issued, then claimed by a first connection, then revoked."""

    ISSUED = "issued"
    CLAIMED = "claimed"
    REVOKED = "revoked"


class Stamp(enum.StrEnum):
    """What becomes of a certificate, by its column; each is set once, in this order."""

    CLAIMED = "claimed_at"
    ADMITTED = "admitted_at"
    REVOKED = "revoked_at"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One proxy certificate. Times are whole seconds in UTC.

    `claimed_at` is the first stream opened with it, `admitted_at` the first listeners acknowledged: both
    are remembered for good, whatever becomes of the connection.
    """

    serial: str
    common_name: str
    uuid: ProxyUuid
    issued_at: datetime
    not_after: datetime
    claimed_at: datetime | None = None
    revoked_at: datetime | None = None
    admitted_at: datetime | None = None

    @classmethod
    def issued(cls, serial: str, name: ProxyName, now: datetime, not_after: datetime) -> Self:
        """Return the entry of a certificate issued now."""
        return cls(serial, str(name), name.uuid, now.replace(microsecond=0), not_after)

    @property
    def state(self) -> LedgerState:
        """Return its state; a revoked one is revoked whether it was claimed before or not."""
        if self.revoked_at is not None:
            return LedgerState.REVOKED
        return LedgerState.ISSUED if self.claimed_at is None else LedgerState.CLAIMED


class Ledger:
    """The open ledger. Safe to use from several threads and from several processes at once.

    Every method raises StateError where the file cannot be read.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lock = threading.Lock()
        self._unwritten: dict[str, dict[Stamp, datetime]] = {}
        self._seen: dict[str, LedgerEntry] = {}
        self._failing = False

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the ledger at `path` (0600), made with the directory above it where it is missing.

        Raises StateError for a file that is no ledger, or one of a newer program.
        """
        return cls(open_file(path), path)

    def close(self) -> None:
        """Write down what was not written yet, if that can be done, and close the file.

        What is asked afterwards is StateError. Waits for a thread that is at work: SQLite's connection,
        closed under a statement, ends the process.
        """
        with suppress(StateError), self._statements() as connection, waiting(connection, BUSY_SECONDS):
            self._write_all(connection)
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def unwritten(self) -> int:
        """Return of how many certificates a stamp is remembered that is not written yet."""
        return len(self._unwritten)

    def record(self, entry: LedgerEntry) -> None:
        """Add an entry; a serial that is there already is StateError: serials are never given twice.

        One that cannot be written is StateError as well: a restart would not know a certificate that is out.
        """
        with self._statements() as connection, waiting(connection, BUSY_SECONDS):
            connection.execute(
                "INSERT INTO proxy_certificates VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    entry.serial,
                    entry.common_name,
                    entry.uuid,
                    _seconds(entry.issued_at),
                    _seconds(entry.not_after),
                    *map(_seconds_or_none, (entry.claimed_at, entry.revoked_at, entry.admitted_at)),
                ),
            )

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial (as we write serials), or None; one look-up by primary key.

        While another process locks the file, an entry is what it was when it was last looked up.
        """
        with self._statements() as connection:
            if serial not in self._seen:
                found = self._entry_or_none(connection, serial)
            else:
                with waiting(connection, 0.0):
                    try:
                        found = self._entry_or_none(connection, serial)
                    except sqlite3.OperationalError as error:
                        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                            raise
                        found = self._stamped(self._seen[serial])
            if found is not None:
                self._seen[serial] = found
            return found

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, sorted by common name, then time of issue, then serial."""
        with self._statements() as connection:
            rows = connection.execute(_SELECT + "ORDER BY common_name, issued_at, serial").fetchall()
            return tuple(self._stamped(_read(row)) for row in rows)

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return the entries of one proxy, sorted by time of issue, then serial."""
        with self._statements() as connection:
            return self._entries_of(connection, name)

    def first(self) -> str | None:
        """Return the serial of the certificate that was issued first; None where none was."""
        query = "SELECT serial FROM proxy_certificates ORDER BY issued_at, serial LIMIT 1"
        with self._statements() as connection:
            row = connection.execute(query).fetchone()
        return None if row is None else str(row[0])

    def last_issued_at(self) -> datetime | None:
        """Return when a certificate was issued last; None where none was."""
        with self._statements() as connection:
            (last,) = connection.execute("SELECT max(issued_at) FROM proxy_certificates").fetchone()
        return _moment_or_none(last)

    def authority(self) -> str | None:
        """Return the fingerprint of the CA that signs what is recorded here; None if that is not known."""
        with self._statements() as connection, suppress(sqlite3.OperationalError):  # no table: an old ledger
            row = connection.execute("SELECT fingerprint FROM authority").fetchone()
            return None if row is None else str(row[0])
        return None

    def name_authority(self, fingerprint: str) -> None:
        """Note which CA signs, where none is noted; without room for that, a later start does it."""
        with self._statements() as connection, suppress(sqlite3.OperationalError):
            connection.execute(
                "INSERT INTO authority SELECT ? WHERE NOT EXISTS (SELECT 1 FROM authority)", (fingerprint,)
            )

    def claim(self, serial: str, now: datetime) -> LedgerEntry:
        """Note that a proxy connected with this certificate, and return the entry.

        Only the first claim is noted, and none of a revoked certificate: look at the entry's state. It waits
        for no disk: it is remembered, and written with the next admissions. Raises RequestError if unknown.
        """
        with self._statements() as connection:
            self._remember(self._known(connection, serial), Stamp.CLAIMED, now)
            return self._look_up(connection, serial)

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Note that these proxies acknowledged their first listeners, and write down all that is remembered.

        It is noted of each certificate that such a proxy has claimed and that is not revoked; only the first
        time. Proxies that the ledger does not know are passed over. After a write that failed, it is left to
        `write_unwritten` to try again: who waits for this would wait in vain.
        """
        with self._statements() as connection:
            for each in [each for name in names for each in self._entries_of(connection, name)]:
                if each.claimed_at is not None:
                    self._remember(each, Stamp.ADMITTED, now)
            if not self._failing:
                with suppress(sqlite3.Error):
                    self._write_all(connection)

    def revoke(self, serial: str, now: datetime) -> LedgerEntry:
        """Revoke a certificate and return its entry; a second time changes nothing.

        The serial may be written as people paste it (`certs.serial.read_serial`). Raises RequestError for
        one that is not in the ledger, with those that are nearest to it; UnwrittenError where it is revoked
        only for as long as this ledger is open, because that cannot be written.
        """
        with self._statements() as connection, waiting(connection, BUSY_SECONDS):
            entry = self._known(connection, read_serial(serial))
            self._remember(entry, Stamp.REVOKED, now)
            # First of all: it holds whatever comes of writing it.
            entry = self._look_up(connection, entry.serial)
            try:
                self._write_in_any_case(connection, entry.serial)
            except sqlite3.Error as error:
                words = f"that {entry.serial} is revoked is not kept"
                raise UnwrittenError(
                    f"ledger {self._path} cannot be written ({error}): {words}", entry
                ) from error
            return self._look_up(connection, entry.serial)

    def write_unwritten(self) -> None:
        """Write down all that is remembered. Raises StateError as long as that cannot be done."""
        with self._statements() as connection:
            self._write_all(connection)

    def _remember(self, entry: LedgerEntry, stamp: Stamp, now: datetime) -> None:
        """Remember a stamp, which is set once, and never on a revoked certificate."""
        if getattr(entry, stamp) is None and entry.revoked_at is None:
            self._unwritten.setdefault(entry.serial, {})[stamp] = now.replace(microsecond=0)

    def _write_all(self, connection: sqlite3.Connection) -> None:
        """Write all that is remembered at once, or on a full disk one after the other as far as that goes."""
        self._failing = True
        try:
            self._write(connection, tuple(self._unwritten))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
            for serial in tuple(self._unwritten):
                self._write(connection, (serial,))
        self._failing = False

    def _write(self, connection: sqlite3.Connection, serials: Iterable[str], *, full: bool = False) -> None:
        """Write what is remembered of these, all of it or nothing; on a `full` disk by pages kept for it."""
        found = {serial: self._unwritten[serial] for serial in serials if serial in self._unwritten}
        if not found:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            if full:
                connection.execute(GIVE_UP_PAGES)
            for serial, noted in found.items():
                for stamp in filter(noted.__contains__, Stamp):
                    connection.execute(
                        f"UPDATE proxy_certificates SET {stamp} = ? "  # noqa: S608 - a literal of this module
                        f"WHERE serial = ? AND {stamp} IS NULL AND revoked_at IS NULL",
                        (_seconds(noted[stamp]), serial),
                    )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite itself has taken it back after some errors
                connection.execute("ROLLBACK")
            raise
        for serial in found:
            del self._unwritten[serial]

    def _write_in_any_case(self, connection: sqlite3.Connection, serial: str) -> None:
        try:
            self._write(connection, (serial,))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
            self._write(connection, (serial,), full=True)

    def _entry_or_none(self, connection: sqlite3.Connection, serial: str) -> LedgerEntry | None:
        row = connection.execute(_SELECT + "WHERE serial = ?", (serial,)).fetchone()
        return None if row is None else self._stamped(_read(row))

    def _entries_of(self, connection: sqlite3.Connection, name: ProxyName) -> tuple[LedgerEntry, ...]:
        query = f"{_SELECT} WHERE common_name = ? ORDER BY issued_at, serial"
        return tuple(self._stamped(_read(row)) for row in connection.execute(query, (str(name),)).fetchall())

    def _known(self, connection: sqlite3.Connection, serial: str) -> LedgerEntry:
        entry = self._entry_or_none(connection, serial)
        if entry is None:
            raise RequestError(f"serial {serial} is not in the ledger; {_near(connection, serial)}")
        return entry

    def _look_up(self, connection: sqlite3.Connection, serial: str) -> LedgerEntry:
        """Return what is known of a serial, and see it."""
        self._seen[serial] = self._known(connection, serial)
        return self._seen[serial]

    def _stamped(self, entry: LedgerEntry) -> LedgerEntry:
        """Return an entry with what is remembered of it."""
        noted = self._unwritten.get(entry.serial)
        return entry if noted is None else _with(entry, noted)

    @contextmanager
    def _statements(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained(self._path):
            yield self._connection


def _with(entry: LedgerEntry, noted: Mapping[Stamp, datetime]) -> LedgerEntry:
    """Return an entry with these stamps, where it does not have them."""
    if entry.revoked_at is not None:
        return entry
    return replace(
        entry,
        claimed_at=entry.claimed_at or noted.get(Stamp.CLAIMED),
        admitted_at=entry.admitted_at or noted.get(Stamp.ADMITTED),
        revoked_at=noted.get(Stamp.REVOKED),
    )


def _near(connection: sqlite3.Connection, serial: str) -> str:
    """Name serials that may have been meant: those beginning alike, or else the newest."""
    query = "SELECT serial, common_name FROM proxy_certificates "
    order = f"ORDER BY issued_at DESC, serial LIMIT {_SHOWN}"
    rows = connection.execute(f"{query} WHERE serial LIKE ? {order}", (f"{serial[:6]}%",)).fetchall()
    rows = rows or connection.execute(f"{query} {order}").fetchall()
    if not rows:
        return "no proxy certificate was issued yet"
    return "known are, among others, " + ", ".join(f"{known} ({name})" for known, name in rows)


def _read(row: tuple[str, str, str, int, int, int | None, int | None, int | None]) -> LedgerEntry:
    serial, common_name, uuid, issued_at, not_after, *stamps = row
    claimed_at, revoked_at, admitted_at = map(_moment_or_none, stamps)
    return LedgerEntry(
        serial,
        common_name,
        ProxyUuid(uuid),
        _moment(issued_at),
        _moment(not_after),
        claimed_at,
        revoked_at,
        admitted_at,
    )


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _seconds_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else _seconds(moment)


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _moment_or_none(seconds: int | None) -> datetime | None:
    return None if seconds is None else _moment(seconds)
