"""Ledger in memory: the contract without a disk, for comparison with other ledgers."""

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from certs.errors import StateError
from certs.keys.serial import read_serial
from certs.ledger.contract import Judge, UnwrittenError, unknown
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from meshwright.mesh.identity import ProxyName


@dataclass
class Record:
    """The data that several ledgers share; while `full` is true, writes fail."""

    rows: dict[str, LedgerEntry] = field(default_factory=dict)
    authority: str | None = None
    full: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)


class MemoryLedger:
    """A ledger of one record."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._noted: dict[str, dict[Stamp, StampDetail]] = {}
        self._failing = False

    @property
    def unwritten(self) -> int:
        """Return the number of certificates with stamps that are not written yet."""
        return len(self._noted)

    def record(self, entry: LedgerEntry, judge: Judge | None = None) -> None:
        """Add an entry."""
        with self._record.lock:
            if judge is not None:
                judge(self.entries_of(ProxyName.parse(entry.common_name)))
            self._require_room()
            if entry.serial in self._record.rows:
                raise StateError(f"serial {entry.serial} is given")
            self._record.rows[entry.serial] = entry

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial."""
        with self._record.lock:
            ledger_entry = self._record.rows.get(serial)
            return None if ledger_entry is None else ledger_entry.stamped(self._noted.get(serial, {}))

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries."""
        with self._record.lock:
            result = filter(None, map(self.entry, self._record.rows))
            return tuple(sorted(result, key=lambda entry: (entry.common_name, entry.issued_at, entry.serial)))

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return the entries of one proxy."""
        return self.entries_of_all((name,))

    def entries_of_all(self, names: Iterable[ProxyName]) -> tuple[LedgerEntry, ...]:
        """Return the entries of some proxies."""
        sought = frozenset(map(str, names))
        return tuple(entry for entry in self.entries() if entry.common_name in sought)

    def first(self) -> str | None:
        """Return the first serial."""
        return min(((entry.issued_at, entry.serial) for entry in self.entries()), default=(None, None))[1]

    def last_issued_at(self) -> datetime | None:
        """Return the time of the newest certificate."""
        return max((entry.issued_at for entry in self.entries()), default=None)

    def authority(self) -> str | None:
        """Return the CA's fingerprint."""
        return self._record.authority

    def name_authority(self, fingerprint: str) -> None:
        """Record the CA, once."""
        if self._record.full:
            return
        self._record.authority = self._record.authority or fingerprint
        for serial, row in self._record.rows.items():
            self._record.rows[serial] = replace(row, signer=row.signer or self._record.authority)

    def change_authority(self, fingerprint: str) -> None:
        """Record another CA."""
        if self._record.full:
            raise StateError("full")
        self._record.authority = fingerprint

    def claim(self, serial: str, now: datetime, address: str = "") -> LedgerEntry:
        """Record a claim in memory."""
        return self._noted_on(self._known(serial), Stamp.CLAIMED, StampDetail.shorten(now, address))

    def see(self, serial: str, now: datetime) -> LedgerEntry:
        """Record in memory that a certificate is in use."""
        return self._noted_on(self._known(serial), Stamp.SEEN, StampDetail.shorten(now))

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Record admissions, and write all stamps."""
        for entry in [entry for name in names for entry in self.entries_of(name)]:
            if entry.claimed_at is not None:
                self._noted_on(entry, Stamp.ADMITTED, StampDetail.shorten(now))
        if not self._failing:
            with suppress(StateError):
                self.write_unwritten()

    def revoke(self, serial: str, now: datetime, why: str = "") -> LedgerEntry:
        """Record a revocation, and write it."""
        entry = self._noted_on(self._known(read_serial(serial)), Stamp.REVOKED, StampDetail.shorten(now, why))
        try:
            self._write(entry.serial)
        except StateError as error:
            raise UnwrittenError(f"the revocation of {entry.serial} is not stored", entry) from error
        return self._known(entry.serial)

    def write_unwritten(self) -> None:
        """Write all stamps that are only in memory."""
        self._failing = True
        for serial in tuple(self._noted):
            self._write(serial)
        self._failing = False

    def _write(self, serial: str) -> None:
        with self._record.lock:
            if serial in self._noted:
                self._require_room()
                rows = self._record.rows
                rows[serial] = rows[serial].stamped(self._noted.pop(serial))

    def _noted_on(self, entry: LedgerEntry, stamp: Stamp, said: StampDetail) -> LedgerEntry:
        if entry.takes(stamp, said.at):
            self._noted.setdefault(entry.serial, {})[stamp] = said
        return self._known(entry.serial)

    def _known(self, serial: str) -> LedgerEntry:
        entry = self.entry(serial)
        if entry is None:
            newest = sorted(self.entries(), key=lambda ledger_entry: ledger_entry.serial)
            newest.sort(key=lambda ledger_entry: ledger_entry.issued_at, reverse=True)
            alike = [ledger_entry for ledger_entry in newest if ledger_entry.serial.startswith(serial[:6])]
            raise unknown(
                serial,
                [(ledger_entry.serial, ledger_entry.common_name) for ledger_entry in (alike or newest)[:5]],
            )
        return entry

    def _require_room(self) -> None:
        if self._record.full:
            raise StateError("there is no room")
