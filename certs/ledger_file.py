"""The ledger's file: its schema, how it is opened, and its failures in plain words."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from certs import files
from certs.errors import StateError

SCHEMA_VERSION: Final = 2
_BUSY_SECONDS: Final = 5.0

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
}
"""What leads from each version of the schema to the next."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file (0600) and bring its schema up to date; made where it is missing.

    For use by several threads, which take turns by themselves. Raises StateError.
    """
    files.private_directory(path.parent)
    # The change to write-ahead logging does not wait for others as SQLite's other steps do.
    with files.locked(path.with_name(path.name + ".lock")), explained(path):
        _make_private(path)
        connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system say into StateError."""
    try:
        yield
    except sqlite3.Error as error:
        raise StateError(f"ledger {path} cannot be used: {error}") from error
    except OSError as error:
        raise StateError(f"ledger {path} cannot be opened: {error.strerror}") from error


def _make_private(path: Path) -> None:
    """Make the file before SQLite would with the umask's mode; its -wal and -shm files take ours over."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


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
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL: after a power failure a revocation must still be there.
    connection.execute("PRAGMA synchronous = FULL")
    for before in range(version, SCHEMA_VERSION):
        connection.executescript(f"BEGIN; {_UPGRADES[before]}; PRAGMA user_version = {before + 1}; COMMIT;")
