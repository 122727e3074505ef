"""A private SQLite file of the state directory: how it is opened and changed, and its failures in words.

On a full disk it must still be read, and a revocation written. So SQLite keeps a rollback journal, a
file that stays and is long enough, and overwrites in place; where a row that grows needs another page, it
takes one of those that are kept for that. With a write-ahead log even reading would need new files.
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
"""So long it is waited for another process that locks a file, where nothing else waits meanwhile."""

JOURNAL_BYTES: Final = 128 * 1024
"""So long is the journal at least: a revocation changes two pages of 4 KiB, or a few more."""

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_SPARE_PAGES: Final = 48
_SPARE_BYTES: Final = 3000
"""What fills a page of 4 KiB so far that no second row has place there."""

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
"""What makes room within the file for a row that has grown."""


@dataclass(frozen=True, slots=True)
class Schema:
    """What a file holds: its name in a sentence, and what leads from each version of its tables to the next.

    `beside` is what may be repeated, of tables without which programs that do not know them can do: for
    these the version stays.
    """

    name: str
    steps: tuple[str, ...]
    beside: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        """Return the version that this program writes."""
        return len(self.steps)


def open_private(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open a file (0600) and bring its tables up to date; made with its directory where it is missing.

    For use by several threads, which take turns by themselves. Raises StateError.
    """
    files.private_directory(path.parent)
    # The change of the journal's mode does not wait for others as SQLite's other steps do.
    with files.locked(path.with_name(path.name + ".lock")), explained(path, schema):
        files.touch_private(path)  # before SQLite would with the umask's mode; its journal takes ours over
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
    """Turn what SQLite and the file system say into StateError."""
    try:
        yield
    except sqlite3.Error as error:
        damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
        kind = DamagedError if damaged else StateError
        raise kind(f"{schema.name} {path} cannot be used: {error}") from error
    except OSError as error:
        raise StateError(f"{schema.name} {path} cannot be opened: {error.strerror}") from error


@contextmanager
def changing(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all that is in the block, or nothing; others wait."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def is_full(error: sqlite3.Error) -> bool:
    """Say whether that is for want of room, which pages that are kept for it may give."""
    return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL


def _prepare(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if version > schema.version:
        raise StateError(
            f"{schema.name} {path} is of a newer version of Meshwright (its schema is {version}, "
            f"this program knows up to {schema.version})"
        )
    if version == 0 and tables:
        raise StateError(f"{path} is not a {schema.name} but another database; move it away")
    # A page that is damaged would be met one day: it is looked for now, and nothing is served of the rest.
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise DamagedError(f"{schema.name} {path} is damaged: {found}")
    connection.execute("PRAGMA journal_mode = PERSIST")
    # FULL: after a power failure a revocation, or a use that was given, must still be there.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    for before in range(version, schema.version):
        step = f"BEGIN; {schema.steps[before]}; PRAGMA user_version = {before + 1}; COMMIT;"
        connection.executescript(step)
    with suppress(sqlite3.OperationalError, OSError):  # there may be no room for it now
        _provide(connection, path.with_name(path.name + "-journal"), schema)


def _provide(connection: sqlite3.Connection, journal: Path, schema: Schema) -> None:
    """Make what is needed on a full disk: spare pages, and a journal that is long enough.

    What follows the journal's content SQLite ignores; meanwhile the lock keeps others from writing there.
    """
    with changing(connection):
        for statement in (*schema.beside, *_SPARE):
            connection.execute(statement)
        with os.fdopen(files.open_private(journal), "r+b", buffering=0) as file:
            file.write(bytes(max(JOURNAL_BYTES - file.seek(0, os.SEEK_END), 0)))
