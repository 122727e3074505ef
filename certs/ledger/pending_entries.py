"""Stamps of proxy certificates (times of use and revocation), which apply before they are in the file."""

import sqlite3
from collections.abc import Iterable

from certs.ledger import rows
from certs.ledger.cache import LedgerCache
from certs.ledger.entry import Stamp
from certs.ledger.remembered_stamps import RememberedStamps
from certs.state.database import GIVE_UP_PAGES, is_full


class PendingEntries(RememberedStamps):
    """Stamps of proxy certificates, kept in memory until they are written to the ledger's file.

    Any thread may add and look up stamps, also during a write, without waiting for the disk. `failing` is
    True after an attempt to write all of them has failed.
    """

    def __init__(self, seen: LedgerCache) -> None:
        super().__init__()
        self._seen = seen
        self.failing = False

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
            self.forget(serial, noted)
        self._seen.wrote(connection)
