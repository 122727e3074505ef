"""Entries of the ledger's file that were read, and whether they still stand there so.

SQLite counts in the file's header the transactions that changed it, whoever made them: that one number, read
without a lock, says whether another process has written since. What is only asked again costs no statement.
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
"""So many entries are kept of all that were read together: a ledger forgets none, though its proxies go."""

_COUNTER: Final = slice(24, 28)
"""The file change counter (SQLite's file format, 1.3.8), big-endian."""

_FORMATS: Final = slice(18, 20)
_ROLLBACK_JOURNAL: Final = b"\1\1"
"""With a write-ahead log transactions are not counted there; whoever changes to one is heard of here."""


class LedgerCache:
    """What was read of the file at `path`, which is open in SQLite.

    `current` may be asked by any thread at any time; all else by who has the connection.
    """

    def __init__(self, path: Path) -> None:
        self._file: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._entries: dict[str, LedgerEntry] = {}
        self._before: dict[str, LedgerEntry] = {}
        self._counter: int | None = None
        self._ours: int | None = None
        self._version: int | None = None

    def close(self) -> None:
        """Let go of the file, after SQLite has: the process' locks on it go with any of its descriptors."""
        self._counter = self._ours = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def current(self, serial: str) -> LedgerEntry | None:
        """Return an entry that stands in the file now; None where that is not known without reading it."""
        # First whether it holds, then the entries: those of a change that was noted meanwhile are new.
        counter = self._count()
        if counter is None or counter not in (self._counter, self._ours):
            return None
        return self._entries.get(serial)

    def last(self, serial: str) -> LedgerEntry | None:
        """Return an entry as it was when it was last read."""
        return self._entries.get(serial) or self._before.get(serial)

    def take(self, entry: LedgerEntry) -> None:
        """Take an entry that was just read."""
        self._entries[entry.serial] = entry

    def take_all(self, entries: Collection[LedgerEntry]) -> None:
        """Take of all entries, which were just read, those that were issued last."""
        for each in heapq.nlargest(AT_ONCE, entries, key=lambda entry: entry.issued_at):
            self.take(each)

    def stamped(self, serial: str, noted: Mapping[Stamp, StampDetail]) -> None:
        """Take it that these stamps were just written."""
        for entries in (self._entries, self._before):  # what is forgotten stands for it while others lock
            if (entry := entries.get(serial)) is not None:
                entries[serial] = entry.stamped(noted)

    @contextmanager
    def reading(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Read in one transaction; what was read before holds in it, or is forgotten."""
        connection.execute("BEGIN")
        try:
            self._look(connection)
            yield
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @contextmanager
    def writing(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Write in one transaction; all of it or nothing.

        What was read before holds until it ends, though its count is in the file sooner: nobody else writes.
        """
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._look(connection)
            changes = connection.total_changes
            yield
            if self._counter is not None and connection.total_changes > changes:
                self._ours = (self._counter + 1) % 2**32
            connection.execute("COMMIT")
        except BaseException:
            self._ours = None
            if connection.in_transaction:  # SQLite itself has taken it back after some errors
                connection.execute("ROLLBACK")
            raise

    def wrote(self, connection: sqlite3.Connection) -> None:
        """Look what the count is now that something was written; without that the next to read does."""
        try:
            with self.reading(connection):
                pass
        except sqlite3.Error:
            self._counter = None
        finally:
            self._ours = None

    def _look(self, connection: sqlite3.Connection) -> None:
        """Forget what was read if another process has written; in a transaction, in which none can."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        counter = self._count()
        if counter is None or version != self._version:
            self._before.update(self._entries)
            self._entries = {}
            for serial in tuple(self._before)[: max(0, len(self._before) - AT_ONCE)]:
                del self._before[serial]
        self._version, self._counter = version, counter

    def _count(self) -> int | None:
        """Return how many transactions are counted in the file; None where they are not."""
        if self._file is None:
            return None
        try:
            header = os.pread(self._file, _COUNTER.stop, 0)
        except OSError:
            return None
        whole = len(header) == _COUNTER.stop and header[_FORMATS] == _ROLLBACK_JOURNAL
        return int.from_bytes(header[_COUNTER], "big") if whole else None
