"""Ledger in one SQLite file of the state directory, shared by the server and commands on the same machine."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from certs.errors import StateError
from certs.keys.serial import read_serial
from certs.ledger import rows
from certs.ledger.cache import LedgerCache
from certs.ledger.contract import Judge, UnwrittenError, unknown
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.file import SCHEMA, open_file, waiting
from certs.ledger.mark import RevocationMark
from certs.ledger.pending_entries import PendingEntries
from certs.state.database import BUSY_SECONDS, explained
from meshwright.mesh.identity import ProxyName


class SqliteLedger:
    """An open ledger in an SQLite file, implementing `certs.ledger.contract.Ledger`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lock = threading.Lock()
        self._seen = LedgerCache(path)
        self._unwritten = PendingEntries(self._seen)
        self._mark = RevocationMark(path)
        self._mark.raise_to(0)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the ledger at `path` (0600); create a missing file or directory.

        Raises StateError for a file of another kind, or written by a newer program.
        """
        connection = open_file(path)
        try:
            with explained(path, SCHEMA):
                return cls(connection, path)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Write the remaining stamps if possible, and close the file. Later calls raise StateError.

        Waits for running statements of other threads, because closing SQLite's connection under a statement
        would crash the process.
        """
        with suppress(StateError), self._statements() as connection, waiting(connection, BUSY_SECONDS):
            self._unwritten.write_all(connection)
            self._mark.raise_to(rows.revocations(connection))
        with self._lock:
            self._connection.close()
            self._seen.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def unwritten(self) -> int:
        """Return the number of certificates with stamps not yet written to the file."""
        return len(self._unwritten)

    def record(self, entry: LedgerEntry, judge: Judge | None = None) -> None:
        """Write a new entry, unless `judge` raises. Raises StateError for an existing serial."""
        with self._statements() as connection, waiting(connection, BUSY_SECONDS):
            with self._seen.writing(connection):
                if judge is not None:
                    judge(self._entries_of(connection, ProxyName.parse(entry.common_name)))
                rows.insert(connection, entry)
            self._seen.wrote(connection)

    def record_all(self, entries: Iterable[LedgerEntry]) -> None:
        """Write the entries of another ledger with all their stamps, in one transaction.

        Raises StateError for an existing serial; then no entry is added.
        """
        with self._statements() as connection, waiting(connection, BUSY_SECONDS):
            with self._seen.writing(connection):
                for entry in entries:
                    rows.insert(connection, entry)
            self._seen.wrote(connection)
            self._mark.raise_to(rows.revocations(connection))

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial, or None; reads the file only after a possible change.

        The caller is the event loop, which must not wait. So the last known entry is returned while another
        process holds the lock, and a cached entry does not wait for a writing thread.
        """
        noted = self._unwritten.noted(serial)
        ledger_entry = self._seen.current(serial)
        if ledger_entry is None:
            with self._statements() as connection:
                ledger_entry = self._read(connection, serial)
        return None if ledger_entry is None else self._unwritten.on(ledger_entry, noted)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, sorted by common name, then time of issue, then serial."""
        with self._statements() as connection, self._seen.reading(connection):
            result = tuple(rows.every(connection))
            self._seen.take_all(result)
            return tuple(map(self._unwritten.on, result))

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return the entries of one proxy, sorted by time of issue, then serial."""
        with self._statements() as connection:
            return self._entries_of(connection, name)

    def entries_of_all(self, names: Iterable[ProxyName]) -> tuple[LedgerEntry, ...]:
        """Return the entries of these proxies, sorted by common name, then time of issue, then serial."""
        with self._statements() as connection, self._seen.reading(connection):
            return tuple(map(self._unwritten.on, rows.by_names(connection, names)))

    def first(self) -> str | None:
        """Return the serial of the first issued certificate, or None if the ledger is empty."""
        with self._statements() as connection:
            return rows.first(connection)

    def last_issued_at(self) -> datetime | None:
        """Return the time of the newest issue, or None if the ledger is empty."""
        with self._statements() as connection:
            return rows.last_issued_at(connection)

    def authority(self) -> str | None:
        """Return the recorded fingerprint of the signing CA; None if unknown."""
        with self._statements() as connection, suppress(sqlite3.OperationalError):  # no table: an old ledger
            row = connection.execute("SELECT fingerprint FROM authority").fetchone()
            return None if row is None else str(row[0])
        return None

    def name_authority(self, fingerprint: str) -> None:
        """Record the signing CA, unless one is recorded; on a full disk, a later start records the CA."""
        with self._statements() as connection, suppress(sqlite3.OperationalError):
            connection.execute(
                "INSERT INTO authority SELECT ? WHERE NOT EXISTS (SELECT 1 FROM authority)", (fingerprint,)
            )
            # Entries without a signer are older than this column; the CA has not changed since.
            connection.execute(
                "UPDATE proxy_certificates SET signer = (SELECT fingerprint FROM authority) WHERE signer = ''"
            )

    def change_authority(self, fingerprint: str) -> None:
        """Record that another CA signs from now on. Raises StateError if writing fails."""
        with self._statements() as connection:
            connection.execute("UPDATE authority SET fingerprint = ?", (fingerprint,))

    def claim(self, serial: str, now: datetime, address: str = "") -> LedgerEntry:
        """Remember the first connection with a certificate, and return the entry; does not wait for the disk.

        Raises RequestError for an unknown serial.
        """
        return self._remember(serial, Stamp.CLAIMED, StampDetail.shorten(now, address))

    def see(self, serial: str, now: datetime) -> LedgerEntry:
        """Remember that a certificate is in use at `now`; result and errors are those of `claim`."""
        return self._remember(serial, Stamp.SEEN, StampDetail.shorten(now))

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Stamp the claimed certificates of these proxies as admitted, and write all remembered stamps."""
        with self._statements() as connection:
            with self._seen.reading(connection):
                entries = [self._unwritten.on(name) for name in rows.by_names(connection, names)]
            for entry in entries:
                if entry.claimed_at is not None:
                    self._unwritten.note(entry, Stamp.ADMITTED, StampDetail.shorten(now))
            # After a failure leave it to `write_unwritten`: each attempt may wait for the disk or a lock.
            if not self._unwritten.failing:
                with suppress(sqlite3.Error):
                    self._unwritten.write_all(connection)

    def revoke(self, serial: str, now: datetime, why: str = "") -> LedgerEntry:
        """Revoke a certificate and return its entry. Raises RequestError, UnwrittenError."""
        with self._statements() as connection, waiting(connection, BUSY_SECONDS):
            entry = self._known_last(connection, read_serial(serial))
            # Remember it first: the revocation must hold even if it cannot be written.
            self._unwritten.note(entry, Stamp.REVOKED, StampDetail.shorten(now, why))
            try:
                self._unwritten.write_now(connection, entry.serial)
            except sqlite3.Error as error:
                words = f"the revocation of {entry.serial} is not stored"
                raise UnwrittenError(
                    f"ledger {self._path} cannot be written ({error}): {words}", self._unwritten.on(entry)
                ) from error
            self._mark.raise_to(rows.revocations(connection))
            return self._unwritten.on(self._known(connection, entry.serial))

    def forgotten(self) -> int:
        """Return the number of lost revocations, if an older file was put in place of the ledger.

        Raises StateError.
        """
        with self._statements() as connection:
            return max(0, self._mark.read() - rows.revocations(connection))

    def note_revocations(self) -> None:
        """Raise the revocation mark to the current number, including revocations by older programs."""
        with self._statements() as connection:
            self._mark.raise_to(rows.revocations(connection))

    def write_unwritten(self) -> None:
        """Write all remembered stamps to the file. Raises StateError as long as writing fails."""
        with self._statements() as connection:
            self._unwritten.write_all(connection)
            self._mark.raise_to(rows.revocations(connection))

    def _remember(self, serial: str, stamp: Stamp, detail: StampDetail) -> LedgerEntry:
        # Stamps before the entry: another thread may write them in between (see `PendingEntries.on`).
        noted = self._unwritten.noted(serial)
        entry = self._seen.current(serial)
        if entry is None:
            with self._statements() as connection:
                entry = self._known(connection, serial)
        self._unwritten.note(entry.stamped(noted), stamp, detail)
        return self._unwritten.on(entry, noted)

    def _entries_of(self, connection: sqlite3.Connection, name: ProxyName) -> tuple[LedgerEntry, ...]:
        return tuple(map(self._unwritten.on, rows.by_name(connection, name)))

    def _read(self, connection: sqlite3.Connection, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial from the file, or the last known one if the file is locked."""
        last = self._seen.last(serial)
        if last is None:
            return self._see(connection, serial)
        # Do not wait: the caller may be the event loop, and the last known entry is good enough.
        with waiting(connection, 0.0):
            try:
                return self._see(connection, serial)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
                return last

    def _see(self, connection: sqlite3.Connection, serial: str) -> LedgerEntry | None:
        with self._seen.reading(connection):
            entry = self._seen.current(serial) or rows.by_serial(connection, serial)
            if entry is not None:
                self._seen.take(entry)
            return entry

    def _known(self, connection: sqlite3.Connection, serial: str) -> LedgerEntry:
        """Return the entry of a serial from the file. Raises RequestError for an unknown serial."""
        entry = self._see(connection, serial)
        if entry is None:
            raise unknown(serial, rows.near(connection, serial))
        return entry

    def _known_last(self, connection: sqlite3.Connection, serial: str) -> LedgerEntry:
        """Return the entry from the file, or the last known one if the file cannot be read or is gone."""
        try:
            return self._known(connection, serial)
        except sqlite3.Error:
            if (last := self._seen.last(serial)) is None:
                raise
            return last

    @contextmanager
    def _statements(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained(self._path, SCHEMA):
            yield self._connection
