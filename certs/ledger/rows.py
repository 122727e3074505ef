"""SQL statements on the rows of the ledger's file."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import ProxyUuid

_Moment = int | None
_Row = tuple[
    str, str, str, int, int, _Moment, _Moment, _Moment, str, _Moment, _Moment, str, str, int | None, str
]

_NEAR: Final = 5
"""Number of serials named in an error."""

_COLUMNS: Final = (
    "serial, common_name, uuid, issued_at, not_after, claimed_at, revoked_at, admitted_at, "
    "claimed_from, seen_at, claim_by, revoked_why, signer, term, joined_by"
)
_ALL: Final = f"SELECT {_COLUMNS} FROM proxy_certificates "  # noqa: S608 - literals of this module

_OF_NAMES: Final = (
    f"SELECT json_group_array(json_array({_COLUMNS})) FROM proxy_certificates "  # noqa: S608 - literals of this module
    "WHERE common_name IN (SELECT value FROM json_each(?))"
)

_SORTED: Final = "ORDER BY common_name, issued_at, serial"

AT_ONCE: Final = 500
"""Limit of serials per UPDATE: SQLite searches the JSON from the beginning for each text."""

_WORDS: Final = {Stamp.CLAIMED: "claimed_from", Stamp.REVOKED: "revoked_why"}
"""Columns of the texts of stamps."""


def insert(connection: sqlite3.Connection, entry: LedgerEntry) -> None:
    """Add the row of a new entry."""
    connection.execute(
        f"INSERT INTO proxy_certificates ({_COLUMNS}) "  # noqa: S608 - literals of this module
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            entry.serial,
            entry.common_name,
            entry.uuid,
            seconds(entry.issued_at),
            seconds(entry.not_after),
            _seconds_or_none(entry.claimed_at),
            _seconds_or_none(entry.revoked_at),
            _seconds_or_none(entry.admitted_at),
            entry.claimed_from,
            _seconds_or_none(entry.seen_at),
            _seconds_or_none(entry.claim_by),
            entry.revoked_why,
            entry.signer,
            None if entry.term is None else int(entry.term.total_seconds()),
            entry.joined_by,
        ),
    )


def stamp(connection: sqlite3.Connection, which: Stamp, noted: Mapping[str, StampDetail]) -> None:
    """Set a stamp on these serials, as far as their rows still take the stamp.

    Another process may have written the rows meanwhile. One statement covers all stamps of a second, up to
    AT_ONCE: after each statement and each row Python may switch to another thread.
    """
    is_open = f"({which} IS NULL OR {which} < ?1)" if which is Stamp.SEEN else f"{which} IS NULL"
    words = f", {_WORDS[which]} = json_extract(?2, '$.\"' || serial || '\"')" if which in _WORDS else ""
    for at in sorted({seconds(stamp_detail.at) for stamp_detail in noted.values()}):
        answer = [
            (serial, stamp_detail.words)
            for serial, stamp_detail in noted.items()
            if seconds(stamp_detail.at) == at
        ]
        for begin in range(0, len(answer), AT_ONCE):
            connection.execute(
                f"UPDATE proxy_certificates SET {which} = ?1{words} "  # noqa: S608 - literals of this package
                f"WHERE serial IN (SELECT key FROM json_each(?2)) AND {is_open} AND revoked_at IS NULL",
                (at, json.dumps(dict(answer[begin : begin + AT_ONCE]))),
            )


def by_serial(connection: sqlite3.Connection, serial: str) -> LedgerEntry | None:
    """Return the entry with a serial, the primary key; None if missing."""
    return next(_read(connection, "WHERE serial = ?", serial), None)


def by_name(connection: sqlite3.Connection, name: ProxyName) -> Iterator[LedgerEntry]:
    """Yield the entries of one proxy, sorted by time of issue, then serial, by an index."""
    return _read(connection, "WHERE common_name = ? ORDER BY issued_at, serial", str(name))


def by_names(connection: sqlite3.Connection, names: Iterable[ProxyName]) -> Iterator[LedgerEntry]:
    """Yield the entries of these proxies, sorted by common name, time of issue and serial, by an index.

    They arrive as one row of JSON, because at each row Python may switch to another thread.
    """
    (result,) = connection.execute(_OF_NAMES, (json.dumps(sorted(set(map(str, names)))),)).fetchone()
    yield from sorted(map(_entry, json.loads(result)), key=_order)


def every(connection: sqlite3.Connection) -> Iterator[LedgerEntry]:
    """Yield all entries, sorted by common name, then time of issue, then serial."""
    return _read(connection, _SORTED)


def first(connection: sqlite3.Connection) -> str | None:
    """Return the serial of the first issued certificate, or None without a row."""
    query = "SELECT serial FROM proxy_certificates ORDER BY issued_at, serial LIMIT 1"
    row = connection.execute(query).fetchone()
    return None if row is None else str(row[0])


def last_issued_at(connection: sqlite3.Connection) -> datetime | None:
    """Return the time of issue of the newest certificate, or None without a row."""
    (last,) = connection.execute("SELECT max(issued_at) FROM proxy_certificates").fetchone()
    return _moment_or_none(last)


def revocations(connection: sqlite3.Connection) -> int:
    """Return the number of revoked certificates, which never falls because rows are kept for good."""
    query = "SELECT count(*) FROM proxy_certificates WHERE revoked_at IS NOT NULL"
    (count,) = connection.execute(query).fetchone()
    return int(count)


def near(connection: sqlite3.Connection, serial: str) -> list[tuple[str, str]]:
    """Return serials similar to an unknown one, with their names.

    These are the serials with the same prefix of 6 digits, or else the newest ones.
    """
    query = "SELECT serial, common_name FROM proxy_certificates "
    order = f"ORDER BY issued_at DESC, serial LIMIT {_NEAR}"
    rows = connection.execute(f"{query} WHERE serial LIKE ? {order}", (f"{serial[:6]}%",)).fetchall()
    return rows or connection.execute(f"{query} {order}").fetchall()


def seconds(moment: datetime) -> int:
    """Return a time in the form of rows: whole seconds since 1970, UTC."""
    return int(moment.timestamp())


def _read(connection: sqlite3.Connection, which: str, *values: str) -> Iterator[LedgerEntry]:
    return map(_entry, connection.execute(_ALL + which, values).fetchall())


def _entry(row: _Row) -> LedgerEntry:
    serial, common_name, uuid, issued_at, not_after, claimed, revoked, admitted = row[:8]
    claimed_from, seen, claim_by, revoked_why, signer, term, joined_by = row[8:]
    return LedgerEntry(
        serial,
        common_name,
        ProxyUuid(uuid),
        _moment(issued_at),
        _moment(not_after),
        _moment_or_none(claimed),
        _moment_or_none(revoked),
        _moment_or_none(admitted),
        claimed_from,
        _moment_or_none(seen),
        _moment_or_none(claim_by),
        revoked_why,
        signer,
        None if term is None else timedelta(seconds=term),
        joined_by,
    )


def _order(entry: LedgerEntry) -> tuple[str, datetime, str]:
    return entry.common_name, entry.issued_at, entry.serial


def _seconds_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else seconds(moment)


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _moment_or_none(seconds: int | None) -> datetime | None:
    return None if seconds is None else _moment(seconds)
