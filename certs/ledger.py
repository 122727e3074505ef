"""The ledger of proxy certificates: which were issued, claimed, admitted and revoked.

One SQLite file in the state directory, shared by the server and the commands beside it.
"""

import enum
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from certs.errors import RequestError
from certs.ledger_file import explained, open_file
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

    Every method raises StateError where the file fails.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the ledger at `path` (0600), made with the directory above it where it is missing.

        Raises StateError for a file that is no ledger, or one of a newer program.
        """
        return cls(open_file(path), path)

    def close(self) -> None:
        """Close the file; what is asked afterwards is StateError.

        Waits for a thread that is at work: SQLite's connection, closed under a statement, ends the process.
        """
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def record(self, entry: LedgerEntry) -> None:
        """Add an entry; a serial that is there already is StateError: serials are never given twice."""
        with self._statements() as connection:
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
        """Return the entry of a serial (as we write serials), or None; one look-up by primary key."""
        with self._statements() as connection:
            return _entry_or_none(connection, serial)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, sorted by common name, then time of issue, then serial."""
        with self._statements() as connection:
            rows = connection.execute(_SELECT + "ORDER BY common_name, issued_at, serial").fetchall()
        return tuple(map(_read, rows))

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return the entries of one proxy, sorted by time of issue, then serial."""
        with self._statements() as connection:
            query = f"{_SELECT} WHERE common_name = ? ORDER BY issued_at, serial"
            rows = connection.execute(query, (str(name),)).fetchall()
        return tuple(map(_read, rows))

    def claim(self, serial: str, now: datetime) -> LedgerEntry:
        """Note that a proxy connected with this certificate, and return the entry.

        Only the first claim is noted, and none of a revoked certificate: look at the entry's state.
        Later ones write nothing, so that reconnects cost a look-up. Raises RequestError if unknown.
        """
        return self._stamp("claimed_at", serial, now)

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Note that these proxies acknowledged their first listeners, all at once or none.

        It is noted of each certificate that such a proxy has claimed and that is not revoked; only the first
        time, in the way of `claim`. Proxies that the ledger does not know are passed over.
        """
        rows = [(_seconds(now), str(name)) for name in names]
        with self._statements() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(
                    "UPDATE proxy_certificates SET admitted_at = ? WHERE common_name = ? "
                    "AND claimed_at IS NOT NULL AND revoked_at IS NULL AND admitted_at IS NULL",
                    rows,
                )
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def revoke(self, serial: str, now: datetime) -> LedgerEntry:
        """Revoke a certificate and return its entry; a second time changes nothing.

        The serial may be written as people paste it (`certs.serial.read_serial`). Raises RequestError for
        one that is not in the ledger, with those that are nearest to it.
        """
        return self._stamp("revoked_at", read_serial(serial), now)

    def _stamp(self, column: str, serial: str, now: datetime) -> LedgerEntry:
        """Set a column of times once, and never on a revoked certificate. `column` is one of our own."""
        with self._statements() as connection:
            entry = _known(connection, serial)
            if getattr(entry, column) is not None:
                return entry
            connection.execute(
                f"UPDATE proxy_certificates SET {column} = ? "  # noqa: S608 - a literal of this module
                f"WHERE serial = ? AND {column} IS NULL AND revoked_at IS NULL",
                (_seconds(now), serial),
            )
            return _known(connection, serial)

    @contextmanager
    def _statements(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained(self._path):
            yield self._connection


def _entry_or_none(connection: sqlite3.Connection, serial: str) -> LedgerEntry | None:
    row = connection.execute(_SELECT + "WHERE serial = ?", (serial,)).fetchone()
    return None if row is None else _read(row)


def _known(connection: sqlite3.Connection, serial: str) -> LedgerEntry:
    entry = _entry_or_none(connection, serial)
    if entry is None:
        raise RequestError(f"serial {serial} is not in the ledger; {_near(connection, serial)}")
    return entry


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
