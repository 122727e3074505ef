"""File of one server with the records that it has followed, for a start while the store is away.

The file is private, and has the contents as they are in the store: private keys are encrypted, and the data
key is only with a passphrase. The file may be deleted at any time, because the store has all records.
"""

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import structlog

from certs.errors import StateError
from certs.state.database import Schema, changing, explained, open_private
from meshwright.records.contract import Record, Revision
from meshwright.records.key import Key

FOLLOWED_FILE: Final = "followed.sqlite"

_SCHEMA: Final = Schema(
    "file of followed records",
    ("CREATE TABLE records (key TEXT PRIMARY KEY, revision TEXT NOT NULL, content BLOB NOT NULL)",),
)

_log = structlog.get_logger("controller.sharing")


class FollowedFile:
    """The file in a state directory; implements `meshwright.records.recovery.local_copy.LocalCopy`.

    Threads may call all methods, and take turns: a cancelled task leaves the thread of its last call behind,
    and SQLite crashes the process if a connection is closed while another thread uses it.
    """

    def __init__(self, state: Path) -> None:
        self._path = state / FOLLOWED_FILE
        self._lock, self._is_closed = threading.Lock(), False
        self._connection: sqlite3.Connection | None = None

    def load(self) -> Iterable[Record]:
        """Return all kept records.

        Nothing is returned of a file that cannot be read, which is made anew, and after `close`.
        """
        with self._lock:
            if self._is_closed:
                return ()
            try:
                with explained(self._path, _SCHEMA):
                    rows = self._opened().execute("SELECT key, content, revision FROM records").fetchall()
            except StateError as error:
                _log.warning("followed records of the last run cannot be read", reason=str(error))
                self._remove()
                return ()
        return tuple(Record(Key(key), bytes(content), Revision(revision)) for key, content, revision in rows)

    def keep(self, changes: Mapping[Key, Record | None]) -> None:
        """Keep changed records, and forget those that are None; raise OSError, also after `close`."""
        kept = [(record.key, record.revision, record.content) for record in changes.values() if record]
        gone = [(key,) for key, record in changes.items() if record is None]
        try:
            with self._lock, explained(self._path, _SCHEMA), changing(self._opened()) as connection:
                connection.executemany("DELETE FROM records WHERE key = ?", gone)
                connection.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", kept)
        except StateError as error:
            raise OSError(str(error)) from error

    def close(self) -> None:
        """Close the file, after the call of another thread; a second call has no effect."""
        with self._lock:
            self._is_closed = True
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> sqlite3.Connection:
        if self._is_closed:
            raise StateError(f"{_SCHEMA.name} {self._path} is closed")
        if self._connection is None:
            self._connection = open_private(self._path, _SCHEMA)
        return self._connection

    def _remove(self) -> None:
        self._disconnect()
        for end in ("", "-journal"):
            self._path.with_name(self._path.name + end).unlink(missing_ok=True)
