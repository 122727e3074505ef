"""The ledger's file: its schema, how it is opened, and its failures in plain words.

On a full disk it must still be read, and a revocation written. So SQLite keeps a rollback journal, a
file that stays and is long enough, and overwrites in place; where a row that grows needs another page, it
takes one of those that are kept for that. With a write-ahead log even reading would need new files.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from certs import files
from certs.errors import DamagedError, StateError

SCHEMA_VERSION: Final = 4
BUSY_SECONDS: Final = 5.0
"""So long it is waited for another process that locks the file, where nothing else waits meanwhile."""

_PATIENCE_SECONDS: Final = 0.25
"""So long otherwise: the caller may be the event loop."""

JOURNAL_BYTES: Final = 128 * 1024
"""So long is the journal at least: a revocation changes two pages of 4 KiB, or a few more."""

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_SPARE_PAGES: Final = 48
_SPARE_BYTES: Final = 3000
"""What fills a page of 4 KiB so far that no second row has place there."""

# Times are whole seconds since 1970, UTC.
_SCHEMA: Final = """
CREATE TABLE proxy_certificates (
    serial TEXT PRIMARY KEY,
    common_name TEXT NOT NULL,
    uuid TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    not_after INTEGER NOT NULL,
    claimed_at INTEGER,
    revoked_at INTEGER,
    admitted_at INTEGER
) WITHOUT ROWID
"""

# Before admissions were noted, whoever had connected got traffic: to go on, they count as admitted.
_UPGRADES: Final = {
    0: _SCHEMA,
    1: """
CREATE INDEX proxy_certificates_by_name ON proxy_certificates (common_name);
UPDATE proxy_certificates SET admitted_at = claimed_at WHERE admitted_at IS NULL
""",
    # A program that passed over the deadline would let in who is to be refused: it is another version.
    2: """
ALTER TABLE proxy_certificates ADD COLUMN claimed_from TEXT NOT NULL DEFAULT '';
ALTER TABLE proxy_certificates ADD COLUMN seen_at INTEGER;
ALTER TABLE proxy_certificates ADD COLUMN claim_by INTEGER;
ALTER TABLE proxy_certificates ADD COLUMN revoked_why TEXT NOT NULL DEFAULT '';
ALTER TABLE proxy_certificates ADD COLUMN signer TEXT NOT NULL DEFAULT ''
""",
    # What was asked for was not noted. A shorter life than usual was: one made longer would be worth more
    # than somebody wanted. A longer one may be what was usual before. Parts of days are the signer's own end.
    3: """
ALTER TABLE proxy_certificates ADD COLUMN term INTEGER;
ALTER TABLE proxy_certificates ADD COLUMN joined_by TEXT NOT NULL DEFAULT '';
UPDATE proxy_certificates SET term = not_after - issued_at
    WHERE not_after - issued_at < 90 * 86400 AND (not_after - issued_at) % 86400 = 0
""",
}
"""What leads from each version of the schema to the next."""

# Programs that do not know these tables can do without them, so that the schema's version stays.
_BESIDE: Final = (
    "CREATE TABLE IF NOT EXISTS authority (fingerprint TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS spare (filling BLOB NOT NULL)",
    f"""
WITH RECURSIVE lacking (number) AS (
    SELECT count(*) + 1 FROM spare UNION ALL SELECT number + 1 FROM lacking WHERE number < {_SPARE_PAGES}
)
INSERT INTO spare SELECT zeroblob({_SPARE_BYTES}) FROM lacking WHERE number <= {_SPARE_PAGES}
""",  # noqa: S608 - numbers of this module
)

GIVE_UP_PAGES: Final = "DELETE FROM spare WHERE rowid IN (SELECT rowid FROM spare LIMIT 4)"
"""What makes room within the file for a row that has grown."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file (0600) and bring its schema up to date; made where it is missing.

    For use by several threads, which take turns by themselves. Raises StateError.
    """
    files.private_directory(path.parent)
    # The change of the journal's mode does not wait for others as SQLite's other steps do.
    with files.locked(path.with_name(path.name + ".lock")), explained(path):
        _make_private(path)
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    connection.execute(_busy(_PATIENCE_SECONDS))
    return connection


@contextmanager
def waiting(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Wait so long for other processes meanwhile."""
    connection.execute(_busy(seconds))
    try:
        yield
    finally:
        connection.execute(_busy(_PATIENCE_SECONDS))


def _busy(seconds: float) -> str:
    return f"PRAGMA busy_timeout = {round(seconds * 1000)}"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system say into StateError."""
    try:
        yield
    except sqlite3.Error as error:
        damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
        kind = DamagedError if damaged else StateError
        raise kind(f"ledger {path} cannot be used: {error}") from error
    except OSError as error:
        raise StateError(f"ledger {path} cannot be opened: {error.strerror}") from error


def _make_private(path: Path) -> None:
    """Make the file before SQLite would with the umask's mode; its journal takes ours over."""
    files.touch_private(path)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if version > SCHEMA_VERSION:
        raise StateError(
            f"ledger {path} is of a newer version of Meshwright (its schema is {version}, "
            f"this program knows up to {SCHEMA_VERSION})"
        )
    if version == 0 and tables:
        raise StateError(f"{path} is not a ledger but another database; move it away")
    # A page that is damaged would be met one day: it is looked for now, and nothing is served of the rest.
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DamagedError(f"ledger {path} is damaged: {found}")
    connection.execute("PRAGMA journal_mode = PERSIST")
    # FULL: after a power failure a revocation must still be there.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    for before in range(version, SCHEMA_VERSION):
        connection.executescript(f"BEGIN; {_UPGRADES[before]}; PRAGMA user_version = {before + 1}; COMMIT;")
    with suppress(sqlite3.OperationalError, OSError):  # there may be no room for it now
        _provide(connection, path.with_name(path.name + "-journal"))


def _provide(connection: sqlite3.Connection, journal: Path) -> None:
    """Make what is needed on a full disk: spare pages, and a journal that is long enough.

    What follows the journal's content SQLite ignores; meanwhile the lock keeps others from writing there.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _BESIDE:
            connection.execute(statement)
        files.touch_private(journal)
        with journal.open("r+b", buffering=0) as file:
            file.write(bytes(max(JOURNAL_BYTES - file.seek(0, os.SEEK_END), 0)))
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
