"""Stamps of proxy certificates (times of use and revocation), which apply before they are in the file."""

import sqlite3
import threading
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from certs.ledger import rows
from certs.ledger.cache import LedgerCache
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.state.database import GIVE_UP_PAGES, is_full

NOTHING: Final[Mapping[Stamp, StampDetail]] = MappingProxyType({})


class PendingEntries:
    """Stamps of proxy certificates, kept in memory until they are written to the ledger's file.

    Any thread may add and look up stamps, also during a write, without waiting for the disk. `failing` is
    True after an attempt to write all of them has failed.
    """

    def __init__(self, seen: LedgerCache) -> None:
        self._seen = seen
        self._noted: dict[str, dict[Stamp, StampDetail]] = {}
        self._lock = threading.Lock()
        self.failing = False

    def __len__(self) -> int:
        return len(self._noted)

    def note(self, entry: LedgerEntry, stamp: Stamp, detail: StampDetail) -> None:
        """Remember a stamp for a later write, if the entry takes the stamp."""
        with self._lock:
            noted = self._noted.get(entry.serial, {})
            if entry.stamped(noted).takes(stamp, detail.at):
                self._noted[entry.serial] = {**noted, stamp: detail}

    def noted(self, serial: str) -> Mapping[Stamp, StampDetail]:
        """Return the remembered stamps of a certificate, which are not yet in the file."""
        return self._noted.get(serial, NOTHING)

    def on(self, entry: LedgerEntry, before: Mapping[Stamp, StampDetail] = NOTHING) -> LedgerEntry:
        """Return a ledger entry with the remembered stamps of its certificate added.

        `before` are the remembered stamps that the caller read with `noted` before it read `entry` from the
        file. Without `before`, stamps that another thread writes in between would be in neither of the two.
        """
        noted = {**before, **self.noted(entry.serial)}
        return entry.stamped(noted) if noted else entry

    def write_all(self, connection: sqlite3.Connection) -> None:
        """Write all stamps in one transaction, or on a full disk one certificate at a time."""
        # True until the end, so errors of any kind leave it True.
        self.failing = True
        try:
            self._write(connection, tuple(self._noted))
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            # A smaller transaction may still fit on the disk.
            for serial in tuple(self._noted):
                self._write(connection, (serial,))
        self.failing = False

    def write_now(self, connection: sqlite3.Connection, serial: str) -> None:
        """Write the remembered stamps of one certificate to the file, on a full disk too."""
        try:
            self._write(connection, (serial,))
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            self._write(connection, (serial,), full=True)

    def _write(self, connection: sqlite3.Connection, serials: Iterable[str], *, full: bool = False) -> None:
        """Write the stamps of these serials in one transaction.

        If `full`, use the pages reserved for a full disk.
        """
        result = {serial: self._noted[serial] for serial in serials if serial in self._noted}
        if not result:
            return
        with self._seen.writing(connection):
            if full:
                connection.execute(GIVE_UP_PAGES)
            # In the order of Stamp, because a revoked row takes no more stamps.
            for stamp in Stamp:
                stamp_details = {serial: noted[stamp] for serial, noted in result.items() if stamp in noted}
                rows.stamp(connection, stamp, stamp_details)
        for serial, noted in result.items():
            self._seen.stamped(serial, noted)
            self._forget(serial, noted)
        self._seen.wrote(connection)

    def _forget(self, serial: str, written: dict[Stamp, StampDetail]) -> None:
        """Forget the written stamps of a certificate, and keep the stamps added during the write."""
        with self._lock:
            left = {
                stamp: stamp_detail
                for stamp, stamp_detail in self._noted[serial].items()
                if stamp_detail is not written.get(stamp)
            }
            if left:
                self._noted[serial] = left
            else:
                del self._noted[serial]
