"""Entries of the ledger in memory, as the store has delivered them."""

import heapq
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from certs.ledger.entry import LedgerEntry
from certs.ledger.records.fields import entries_in, forgotten_in, in_order, merged, name_of_record
from certs.ledger.records.header import First
from meshwright.records.content import Content, UnreadableContentError
from meshwright.records.contract import Record, Revision
from meshwright.records.key import Key

_NEAR: Final = 5
"""Number of serials named in an error."""

_log = structlog.get_logger("certs.ledger.records")


@dataclass(frozen=True, slots=True)
class _ProxyRecord:
    """Certificates of one proxy, the count of the write that they are from, and removed serials."""

    entries: tuple[LedgerEntry, ...]
    count: int
    forgotten: tuple[str, ...] = ()


class KnownEntries:
    """The last readable form of each proxy's record. Only the event loop changes it; any thread may read.

    A store can go back to an older snapshot, and a record can be deleted by hand. Both must not make a
    revocation unknown. Therefore no record takes a stamp away, and only one with a higher count takes a
    certificate away: otherwise the record is `behind`, until the store has everything that is known here. An
    orderly removal of a proxy is a write of its record without certificates, and then the removal.
    """

    def __init__(self) -> None:
        self._records: dict[Key, _ProxyRecord] = {}
        self._keys: dict[str, Key] = {}
        self._behind: set[Key] = set()
        self._unreadable: dict[Key, Revision] = {}
        self._lock = threading.Lock()
        self.first: First | None = None
        self.newest: LedgerEntry | None = None

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial, or None."""
        with self._lock:
            key = self._keys.get(serial)
            record = None if key is None else self._records.get(key)
        entries = () if record is None else record.entries
        return next((entry for entry in entries if entry.serial == serial), None)

    def key(self, serial: str) -> Key | None:
        """Return the key of the record with a serial, or None."""
        return self._keys.get(serial)

    def of(self, key: Key) -> tuple[LedgerEntry, ...]:
        """Return the entries of one proxy, sorted by time of issue, then serial."""
        record = self._records.get(key)
        return () if record is None else record.entries

    def all(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, sorted by common name, then time of issue, then serial."""
        with self._lock:
            records = tuple(self._records.values())
        return in_order(entry for record in records for entry in record.entries)

    def proxies(self) -> tuple[Key, ...]:
        """Return the keys of all known proxies."""
        with self._lock:
            return tuple(self._records)

    def is_unreadable(self, key: Key) -> bool:
        """Return whether the record of a key was damaged, or of a newer version, when it was last seen."""
        return key in self._unreadable

    def behind(self) -> frozenset[Key]:
        """Return the keys of the records in which the store lacks something that is known here."""
        with self._lock:
            return frozenset(self._behind)

    def near(self, serial: str) -> list[tuple[str, str]]:
        """Return serials similar to an unknown one, with their names.

        These are the serials with the same prefix of 6 digits, or else the newest ones.
        """
        known = self.all()
        alike = [entry for entry in known if entry.serial.startswith(serial[:6])]
        newest = heapq.nsmallest(
            _NEAR, alike or known, key=lambda entry: (-entry.issued_at.timestamp(), entry.serial)
        )
        return [(entry.serial, entry.common_name) for entry in newest]

    def take(self, record: Record) -> None:
        """Take a record of the store.

        A damaged or newer one is logged once, and its last readable form stays.
        """
        try:
            content = Content.decode(record.content)
            entries = entries_in(name_of_record(record.key), content.fields)
        except UnreadableContentError as error:
            if self._unreadable.get(record.key) != record.revision:
                self._unreadable[record.key] = record.revision
                _log.error("record of a proxy cannot be read", key=record.key, reason=str(error))
            return
        self._unreadable.pop(record.key, None)
        self._put(record.key, _ProxyRecord(entries, content.count, forgotten_in(content.fields)))

    def missing(self, key: Key) -> None:
        """Note that the store has no record of a key. Certificates that are known here stay known."""
        self._unreadable.pop(key, None)
        before = self._records.get(key)
        if before is None:
            return
        if before.entries:
            if key not in self._behind:
                _log.warning("record of a proxy was deleted; it is written again", key=key)
            with self._lock:
                self._behind.add(key)
        else:
            with self._lock:
                del self._records[key]
                self._behind.discard(key)

    def _put(self, key: Key, stored: _ProxyRecord) -> None:
        before = self._records.get(key, _ProxyRecord((), 0))
        entries = merged(self._kept(key, before, stored), stored.entries)
        is_behind = entries != stored.entries
        result = (
            replace(stored, entries=entries, count=max(before.count, stored.count)) if is_behind else stored
        )
        with self._lock:
            self._records[key] = result
            (self._behind.add if is_behind else self._behind.discard)(key)
            self._index(key, before.entries, result.entries)

    def _kept(self, key: Key, before: _ProxyRecord, stored: _ProxyRecord) -> Iterable[LedgerEntry]:
        """Return the entries known before that must be in the store now.

        A later write may have removed certificates in order, and never takes a stamp away.
        """
        serials = {entry.serial for entry in stored.entries}
        if key in self._behind or stored.count <= before.count:
            removed = {*stored.forgotten} - serials  # as in `lost_certificates`, or the two would disagree
            return (entry for entry in before.entries if entry.serial not in removed)
        return (entry for entry in before.entries if entry.serial in serials)

    def _index(self, key: Key, before: Iterable[LedgerEntry], after: tuple[LedgerEntry, ...]) -> None:
        serials = {entry.serial for entry in after}
        for entry in before:
            if entry.serial not in serials and self._keys.get(entry.serial) == key:
                del self._keys[entry.serial]
        for entry in after:
            # Serials are random and unique. If two records claim one, the answer is the same on all servers.
            if (other := self._keys.setdefault(entry.serial, key)) != key:
                _log.error(
                    "two proxies have a certificate with one serial", serial=entry.serial, keys=[other, key]
                )
                self._keys[entry.serial] = min(other, key)
            self.first = min(filter(None, (self.first, (int(entry.issued_at.timestamp()), entry.serial))))
            if self.newest is None or self.newest.issued_at < entry.issued_at:
                self.newest = entry
