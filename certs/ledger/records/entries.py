"""Entries of the shared ledger as one server shows them: the store's, with what only this server knows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

import structlog

from certs.ledger.contract import Receive, unknown
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.records.fields import in_order
from certs.ledger.records.header import HEADER, Header
from certs.ledger.records.known_entries import KnownEntries
from certs.ledger.remembered_stamps import NOTHING, RememberedStamps
from meshwright.records.content import Content, UnreadableContentError
from meshwright.records.contract import Record
from meshwright.records.key import Key

_log = structlog.get_logger("certs.ledger.records")


def ignore(entries: tuple[LedgerEntry, ...]) -> None:
    """Ignore entries, before the ledger is followed."""
    del entries


class SharedEntries:
    """Entries from the store, with stamps that are not written yet and the last uses on this server.

    `take` is for the event loop. It calls `receive` with the entries that a write elsewhere has changed. All
    other methods may be called from any thread.
    """

    def __init__(self) -> None:
        self.known = KnownEntries()
        self.stamps = RememberedStamps()
        self.header = Header()
        self.receive: Receive = ignore
        self.recording: set[str] = set()
        """Serials that this server records now, so they are no news."""
        self._seen: dict[str, datetime] = {}

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial, or None."""
        noted = self.stamps.noted(serial)
        entry = self.known.entry(serial)
        return None if entry is None else self.shown(entry, noted)

    def require(self, serial: str) -> LedgerEntry:
        """Return the entry of a serial; raise RequestError for an unknown one."""
        entry = self.entry(serial)
        if entry is None:
            raise unknown(serial, self.known.near(serial))
        return entry

    def all(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, sorted by common name, then time of issue, then serial."""
        return self._all_shown(self.known.all)

    def of(self, keys: Iterable[Key]) -> tuple[LedgerEntry, ...]:
        """Return the entries of these proxies, sorted by common name, then time of issue, then serial."""
        wanted = tuple(keys)
        return in_order(self._all_shown(lambda: (entry for key in wanted for entry in self.known.of(key))))

    def keys_of(self, serials: Iterable[str]) -> frozenset[Key]:
        """Return the keys of the records with these serials; forget stamps of certificates that are gone."""
        keys = {serial: self.known.key(serial) for serial in serials}
        for serial, key in keys.items():
            if key is None:
                self.stamps.forget(serial, self.stamps.noted(serial))
        return frozenset(key for key in keys.values() if key is not None)

    def see(self, entry: LedgerEntry, now: datetime) -> None:
        """Remember that a certificate is in use, if the entry takes the stamp."""
        if entry.takes(Stamp.SEEN, now):
            self._seen[entry.serial] = StampDetail.shorten(now).at

    def shown(self, entry: LedgerEntry, noted: Mapping[Stamp, StampDetail] = NOTHING) -> LedgerEntry:
        """Return an entry of the store with everything that only this server knows."""
        shown = self.stamps.on(entry, noted)
        seen_at = self._seen.get(entry.serial)
        if seen_at is not None and (shown.seen_at is None or shown.seen_at < seen_at):
            shown = replace(shown, seen_at=seen_at)
        if not shown.signer and self.header.first_authority is not None:
            shown = replace(shown, signer=self.header.first_authority)
        return shown

    def take(self, key: Key, record: Record | None) -> None:
        """Take a record as it is in the store, or None for a record that is not there."""
        if key == HEADER:
            self._take_header(record)
            return
        before = {entry.serial: self.shown(entry) for entry in self.known.of(key)}
        if record is None:
            self.known.missing(key)
        else:
            self.known.take(record)
        after = {entry.serial: self.shown(entry) for entry in self.known.of(key)}
        for serial in before.keys() - after.keys():
            self._seen.pop(serial, None)
        changed = [entry for serial, entry in after.items() if before.get(serial) != entry]
        news = tuple(entry for entry in changed if entry.serial not in self.recording)
        if news:
            self.receive(news)

    def _take_header(self, record: Record | None) -> None:
        if record is None:
            return
        try:
            self.header = Header.read(Content.decode(record.content).fields)
        except UnreadableContentError as error:
            _log.error("record of the ledger cannot be read", key=record.key, reason=str(error))

    def _all_shown(self, known: Callable[[], Iterable[LedgerEntry]]) -> tuple[LedgerEntry, ...]:
        # Stamps before the entries, because a write moves them from the one to the other.
        noted = {serial: self.stamps.noted(serial) for serial in self.stamps.serials()}
        return tuple(self.shown(entry, noted.get(entry.serial, NOTHING)) for entry in known())
