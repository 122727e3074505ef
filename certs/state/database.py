"""Private SQLite files of the state directory: opening, migration, transactions and errors.

On a full disk they must still be readable, and the ledger must take a revocation. SQLite therefore uses a
persistent rollback journal of sufficient length, and overwrites pages in place. A row that needs another page
takes a reserved one. A write-ahead log would need new files even for reading.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from certs.errors import DamagedError, StateError
from certs.state import files

BUSY_SECONDS: Final = 5.0
"""Wait for the lock of another process, if the caller is not the event loop."""

JOURNAL_BYTES: Final = 128 * 1024
"""Smallest size of the journal: a revocation changes two pages of 4 KiB, or a few more."""

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_SPARE_PAGES: Final = 48
_SPARE_BYTES: Final = 3000
"""Size of a filling, so that a page of 4 KiB has room for one row only."""

# Programs that do not know this table can do without it.
_SPARE: Final = (
    "CREATE TABLE IF NOT EXISTS spare (filling BLOB NOT NULL)",
    f"""
WITH RECURSIVE lacking (number) AS (
    SELECT count(*) + 1 FROM spare UNION ALL SELECT number + 1 FROM lacking WHERE number < {_SPARE_PAGES}
)
INSERT INTO spare SELECT zeroblob({_SPARE_BYTES}) FROM lacking WHERE number <= {_SPARE_PAGES}
""",  # noqa: S608 - numbers of this module
)

GIVE_UP_PAGES: Final = "DELETE FROM spare WHERE rowid IN (SELECT rowid FROM spare LIMIT 4)"
"""Statement to free reserved pages for a growing row."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Tables of a file: the name for errors, for example `ledger`, and one migration per version.

    `beside` are repeatable statements, for tables ignored by older programs; they do not change the version.
    """

    name: str
    steps: tuple[str, ...]
    beside: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """Return the version of the tables that this program writes."""
        return len(self.steps)


def open_private(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open a file (0600) and migrate its tables; create a missing file or directory.

    Several threads may use the connection, if they take turns by themselves. Raises StateError.
    """
    files.private_directory(path.parent)
    # Unlike other statements, PRAGMA journal_mode does not wait for the lock of another process.
    with files.locked(path.with_name(path.name + ".lock")), explained(path, schema):
        files.touch_private(path)  # SQLite would use the umask; its journal inherits our mode
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path, schema)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def explained(path: Path, schema: Schema) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into StateError, or DamagedError for a damaged file."""
    try:
        yield
    except sqlite3.Error as error:
        damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
        kind = DamagedError if damaged else StateError
        raise kind(f"{schema.name} {path} cannot be used: {error}") from error
    except OSError as error:
        raise StateError(f"cannot open {schema.name} {path}: {error.strerror}") from error


@contextmanager
def changing(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Execute the block, which gets the connection, in one transaction: as a whole or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def is_full(error: sqlite3.Error) -> bool:
    """Return whether the disk is full, so the reserved pages may help."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL


def _prepare(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if version > schema.version:
        raise StateError(
            f"{schema.name} {path} was written by a newer version of Meshwright (it has "
            f"schema {version}, this version supports schemas up to {schema.version}); "
            "run the newer version, or restore a backup"
        )
    if version == 0 and tables:
        raise StateError(f"{path} is not a {schema.name} but another database; move it to another place")
    # Look for damaged pages now, rather than serve the rest until one is read.
    (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise DamagedError(f"{schema.name} {path} is damaged: {result}")
    # Keep the journal file, because a new one could not be created on a full disk.
    connection.execute("PRAGMA journal_mode = PERSIST")
    # FULL: a revocation, or the use of a token, must survive a power failure.
    connection.execute("PRAGMA synchronous = FULL")
    # Temporary files could not be created on a full disk.
    connection.execute("PRAGMA temp_store = MEMORY")
    for before in range(version, schema.version):
        step = f"BEGIN; {schema.steps[before]}; PRAGMA user_version = {before + 1}; COMMIT;"
        connection.executescript(step)
    with suppress(sqlite3.OperationalError, OSError):  # the disk may be full now
        _provide(connection, path.with_name(path.name + "-journal"), schema)


def _provide(connection: sqlite3.Connection, journal: Path, schema: Schema) -> None:
    """Prepare for a full disk: reserve pages, and extend the journal.

    SQLite ignores bytes after the journal's content. The lock keeps others from writing there meanwhile.
    """
    with changing(connection):
        for statement in (*schema.beside, *_SPARE):
            connection.execute(statement)
        with os.fdopen(files.open_private(journal), "r+b", buffering=0) as file:
            file.write(bytes(max(JOURNAL_BYTES - file.seek(0, os.SEEK_END), 0)))
