"""Cache of the ledger's entries, checked against SQLite's file change counter.

SQLite counts in the file's header every transaction that changed the file, of any process (file format,
section 1.3.8). The counter is read without a lock and shows whether another process has written since.
Unchanged entries are therefore returned without an SQL statement. For example, after a command has revoked a
certificate, the server notices the higher counter at the next look-up.
"""

import heapq
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from certs.ledger.entry import LedgerEntry, Stamp, StampDetail

AT_ONCE: Final = 10_000
"""Limit of entries kept from one read of all: a ledger keeps the rows of former proxies."""

_COUNTER: Final = slice(24, 28)
"""File change counter (SQLite's file format, 1.3.8), big-endian."""

_FORMATS: Final = slice(18, 20)
_ROLLBACK_JOURNAL: Final = b"\1\1"
"""Format of a file with a rollback journal.

In write-ahead mode the counter does not count transactions, so the cache is not used then.
"""


class LedgerCache:
    """Entries read from the file at `path`, which is open in SQLite.

    Any thread may call `current` at any time. All other methods are for the thread with the connection.
    """

    def __init__(self, path: Path) -> None:
        self._file: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._entries: dict[str, LedgerEntry] = {}
        self._before: dict[str, LedgerEntry] = {}
        self._counter: int | None = None
        self._ours: int | None = None
        self._version: int | None = None

    def close(self) -> None:
        """Close the file; only after SQLite's connection is closed.

        POSIX releases all locks of a process on a file when the process closes any descriptor of that file.
        """
        self._counter = self._ours = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def current(self, serial: str) -> LedgerEntry | None:
        """Return the cached entry of a serial if up to date, or None if the file must be read."""
        # Check the counter before the entries: those of a change in between are newer, never older.
        counter = self._count()
        if counter is None or counter not in (self._counter, self._ours):
            return None
        return self._entries.get(serial)

    def last(self, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial as last read from the file, or None if unknown."""
        return self._entries.get(serial) or self._before.get(serial)

    def take(self, entry: LedgerEntry) -> None:
        """Store an entry just read from the file."""
        self._entries[entry.serial] = entry

    def take_all(self, entries: Collection[LedgerEntry]) -> None:
        """Store the AT_ONCE most recently issued ones of all entries, which were just read from the file."""
        for ledger_entry in heapq.nlargest(AT_ONCE, entries, key=lambda entry: entry.issued_at):
            self.take(ledger_entry)

    def stamped(self, serial: str, noted: Mapping[Stamp, StampDetail]) -> None:
        """Apply stamps just written to the file to the cached entry of a serial."""
        for entries in (
            self._entries,
            self._before,
        ):  # `last` returns entries of `_before` while others hold the lock
            if (entry := entries.get(serial)) is not None:
                entries[serial] = entry.stamped(noted)

    @contextmanager
    def reading(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Read the file in one transaction, in which stale cached entries are dropped first."""
        connection.execute("BEGIN")
        try:
            self._look(connection)
            yield
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @contextmanager
    def writing(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Write in one transaction, as a whole or not at all.

        Cached entries stay valid until the transaction ends, although the counter in the file changes
        earlier, because the transaction excludes all other writers.
        """
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._look(connection)
            changes = connection.total_changes
            yield
            if self._counter is not None and connection.total_changes > changes:
                # The commit increments the counter in the file. Expect that before, because other threads
                # call `current` as soon as the commit is done.
                self._ours = (self._counter + 1) % 2**32
            connection.execute("COMMIT")
        except BaseException:
            self._ours = None
            if connection.in_transaction:  # after some errors SQLite has rolled back already
                connection.execute("ROLLBACK")
            raise

    def wrote(self, connection: sqlite3.Connection) -> None:
        """Read the file's change counter after a write; on failure the next reader reads the counter."""
        try:
            with self.reading(connection):
                pass
        except sqlite3.Error:
            self._counter = None
        finally:
            self._ours = None

    def _look(self, connection: sqlite3.Connection) -> None:
        """Drop cached entries if another process has written.

        Call within a transaction, which excludes other writers.
        """
        # data_version changes when another connection has written, but not for writes of this one.
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        counter = self._count()
        if counter is None or version != self._version:
            self._before.update(self._entries)
            self._entries = {}
            for serial in tuple(self._before)[: max(0, len(self._before) - AT_ONCE)]:
                del self._before[serial]
        self._version, self._counter = version, counter

    def _count(self) -> int | None:
        """Return the change counter in the header of the SQLite file, or None if invalid."""
        if self._file is None:
            return None
        try:
            header = os.pread(self._file, _COUNTER.stop, 0)
        except OSError:
            return None
        whole = len(header) == _COUNTER.stop and header[_FORMATS] == _ROLLBACK_JOURNAL
        return int.from_bytes(header[_COUNTER], "big") if whole else None
