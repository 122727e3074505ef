"""Ledger of several servers, in records of a store that they share."""

import asyncio
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Final

from certs.errors import StateError
from certs.keys.serial import read_serial
from certs.ledger.contract import Judge, Receive, UnwrittenError
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.records.entries import SharedEntries
from certs.ledger.records.fields import PROXIES, key_of_proxy, name_of_record
from certs.ledger.records.header import HEADER, Header, with_authority, with_first, with_first_authority
from certs.ledger.records.pruning import kept
from certs.ledger.records.writes import RecordWrites, Staying, UnchangeableRecordsError
from certs.ledger.retention import Retention
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import UnreadableContentError
from meshwright.records.contract import Changes, RecordsError, RecordStore, ReplicaId
from meshwright.records.key import Key
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import Change, Writer, update

_LAST_ISSUED: Final = 64
_ISSUED_SECONDS: Final = 600.0


class RecordedLedger:
    """A server's view of the shared ledger, implementing `certs.ledger.contract.SharedLedger`.

    Reads are answered from memory, which `follow` keeps up to date. Methods that wait for the store are for
    threads; on the event loop of the store they raise `CallOnLoopError`. The time of the last use (SEEN) is
    kept in memory only, because writing it would be most of all writes.
    """

    def __init__(self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._writer = Writer(replica)
        self._calls = ThreadCalls(loop)
        self._entries = SharedEntries()
        self._writes = RecordWrites(store, self._writer, self._entries)
        self._is_failing = False
        self._issued: tuple[tuple[float, str], ...] = ()

    async def follow(self, receive: Receive) -> None:
        """Keep the entries up to date until cancelled; see `SharedLedger.follow`."""
        self._entries.receive = receive
        first = {PROXIES, HEADER}

        def heard(prefix: Key, changes: Changes) -> None:
            if prefix in first:  # the first call has all records, so others are gone
                first.discard(prefix)
                there = {record.key for record in changes.records}
                removed = (
                    key for key in self._entries.known.proxies() if prefix == PROXIES and key not in there
                )
                changes = Changes(changes.records, tuple(removed))
            for record in changes.records:
                self._entries.take(record.key, record)
            for key in changes.removed:
                self._entries.take(key, None)

        async with asyncio.TaskGroup() as group:
            for prefix in (HEADER, PROXIES):
                group.create_task(self._store.follow(prefix, partial(heard, prefix)))

    async def fetch(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Ask the store for the certificates of a proxy, and return them; raise StateError.

        May be awaited on any event loop.
        """
        with _explained(f"the certificates of {name} cannot be read"):
            return await self._calls.wait_for(self._fetch(name))

    async def _fetch(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        key = key_of_proxy(name)
        self._entries.take(key, await self._store.read(key))
        if self._entries.known.is_unreadable(key):
            raise UnreadableContentError(f"record {key} cannot be read: see the log")
        return self.entries_of(name)

    def issued(self) -> tuple[str, ...]:
        """Return the serials that this server has recorded last, within some minutes.

        They are more than it records at the same time. Therefore a server that knows all of them knows the
        earlier ones too, because the store delivers in order.
        """
        since = time.monotonic() - _ISSUED_SECONDS
        return tuple(serial for at, serial in self._issued if at >= since)

    @property
    def unwritten(self) -> int:
        """Return the number of certificates with stamps not yet written, and of records lost by the store."""
        return len(self._entries.stamps) + len(self._entries.known.behind())

    def record(self, entry: LedgerEntry, judge: Judge | None = None) -> None:
        """Write a new entry, unless `judge` raises. Raises StateError for an existing serial."""
        present = self._entries.entry(entry.serial)
        if present is not None and present.common_name != entry.common_name:
            raise StateError(f"serial {entry.serial} is given to {present.common_name}")
        with _explained(f"certificate {entry.serial} of {entry.common_name} is not recorded"):
            self._calls.run(self._record(entry, judge))

    def entry(self, serial: str) -> LedgerEntry | None:
        """Return the entry of a serial, or None."""
        return self._entries.entry(serial)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries, sorted by common name, then time of issue, then serial."""
        return self._entries.all()

    def entries_of(self, name: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return the entries of one proxy, sorted by time of issue, then serial."""
        return self._entries.of((key_of_proxy(name),))

    def entries_of_all(self, names: Iterable[ProxyName]) -> tuple[LedgerEntry, ...]:
        """Return the entries of these proxies, sorted by common name, then time of issue, then serial."""
        return self._entries.of(set(map(key_of_proxy, names)))

    def first(self) -> str | None:
        """Return the serial of the first issued certificate, or None if the ledger is empty."""
        firsts = [
            first for first in (self._entries.header.first, self._entries.known.first) if first is not None
        ]
        return min(firsts)[1] if firsts else None

    def last_issued_at(self) -> datetime | None:
        """Return the time of the newest issue, or None if the ledger is empty."""
        newest = self._entries.known.newest
        return None if newest is None else newest.issued_at

    def authority(self) -> str | None:
        """Return the recorded fingerprint of the signing CA; None if unknown."""
        return self._entries.header.authority

    def name_authority(self, fingerprint: str) -> None:
        """Record the signing CA, unless one is recorded; without the store, a later start records the CA."""
        change = partial(with_first_authority, fingerprint=fingerprint)
        with _explained("the signing CA is not recorded"), suppress(RecordsError):
            self._calls.run(self._change_header(change))

    def change_authority(self, fingerprint: str) -> None:
        """Record that another CA signs from now on. Raises StateError if writing fails."""
        with _explained("the signing CA is not recorded"):
            self._calls.run(self._change_header(partial(with_authority, fingerprint=fingerprint)))

    def claim(self, serial: str, now: datetime, address: str = "") -> LedgerEntry:
        """Remember the first connection with a certificate, and return the entry; does not wait.

        Raises RequestError for an unknown serial.
        """
        entry = self._entries.require(serial)
        self._entries.stamps.note(entry, Stamp.CLAIMED, StampDetail.shorten(now, address))
        return self._entries.require(serial)

    def see(self, serial: str, now: datetime) -> LedgerEntry:
        """Remember that a certificate is in use at `now`, on this server; otherwise as `claim`."""
        entry = self._entries.require(serial)
        self._entries.see(entry, now)
        return self._entries.require(serial)

    def admit(self, names: Iterable[ProxyName], now: datetime) -> None:
        """Stamp the claimed certificates of these proxies as admitted, and write all remembered stamps."""
        for entry in self.entries_of_all(names):
            if entry.claimed_at is not None:
                self._entries.stamps.note(entry, Stamp.ADMITTED, StampDetail.shorten(now))
        # After a failure leave it to `write_unwritten`: each attempt may wait for the store.
        if not self._is_failing:
            with suppress(StateError):
                self.write_unwritten()

    def revoke(self, serial: str, now: datetime, why: str = "") -> LedgerEntry:
        """Revoke a certificate and return its entry. Raises RequestError, UnwrittenError."""
        entry = self._entries.require(read_serial(serial))
        # Remember it first: the revocation must hold even if it cannot be written.
        self._entries.stamps.note(entry, Stamp.REVOKED, StampDetail.shorten(now, why))
        unwritten = (entry.serial,) if self._entries.stamps.noted(entry.serial) else ()
        try:
            self._calls.run(self._writes.write(self._entries.keys_of(unwritten)))
        except RecordsError as error:
            words = f"the revocation of {entry.serial} is not stored"
            raise UnwrittenError(
                f"the shared ledger cannot be written ({error}): {words}", self._entries.require(entry.serial)
            ) from error
        return self._entries.require(entry.serial)

    def names(self) -> tuple[ProxyName, ...]:
        """Return the names of all proxies with a record, sorted as their keys are; does not wait."""
        return tuple(map(name_of_record, sorted(self._entries.known.proxies())))

    def is_forgettable(self, name: ProxyName, retention: Retention) -> bool:
        """Return whether `forget` would change the record of a proxy; does not wait."""
        entries = self.entries_of(name)
        return entries != _staying(retention)(entries) or not (entries or retention.has_workload)

    async def forget(self, name: ProxyName, retention: Retention) -> bool:
        """Drop the certificates that a proxy does not need any more; return whether any was dropped.

        The record of a proxy without certificates and workload is removed. May be awaited on any event loop.
        Raises StateError.
        """
        with _explained(f"the old certificates of {name} are not forgotten"):
            return await self._calls.wait_for(self._forget(key_of_proxy(name), retention))

    async def _forget(self, key: Key, retention: Retention) -> bool:
        await self._note_first()
        return await self._writes.forget(key, _staying(retention), removes=not retention.has_workload)

    def write_unwritten(self) -> None:
        """Write all remembered stamps, and what the store has lost.

        Raises StateError as long as writing fails.
        """
        with _explained("changes of proxy certificates are not written"):
            try:
                self._calls.run(self._write_all())
            except (RecordsError, UnreadableContentError) as error:
                # If the store answers, others need not wait because of single records.
                self._is_failing = not isinstance(error, UnchangeableRecordsError)
                raise
        self._is_failing = False

    async def _record(self, entry: LedgerEntry, judge: Judge | None) -> None:
        self._entries.recording.add(entry.serial)
        try:
            await self._writes.record(entry, judge)
        finally:
            self._entries.recording.discard(entry.serial)
        self._issued = (*self._issued, (time.monotonic(), entry.serial))[-_LAST_ISSUED:]
        with suppress(RecordsError, UnreadableContentError):  # written with the next certificate
            await self._note_first()

    async def _write_all(self) -> None:
        entries = self._entries
        keys = entries.keys_of(entries.stamps.serials()) | entries.known.behind()
        await self._writes.write(sorted(keys))
        await self._note_first()

    async def _note_first(self) -> None:
        first, recorded = self._entries.known.first, self._entries.header.first
        if first is not None and (recorded is None or first < recorded):
            await self._change_header(partial(with_first, first=first))

    async def _change_header(self, change: Change) -> None:
        version = await update(self._store, HEADER, change, self._writer)
        if version.content is not None:
            self._entries.header = Header.read(version.content.fields)


def _staying(retention: Retention) -> Staying:
    return partial(
        kept,
        now=retention.now,
        has_workload=retention.has_workload,
        keeps_revoked=retention.keeps_revoked,
        gone_since=retention.gone_since,
    )


@contextmanager
def _explained(words: str) -> Iterator[None]:
    """Raise errors of the store as StateError."""
    try:
        yield
    except (RecordsError, UnreadableContentError) as error:
        raise StateError(f"the shared ledger cannot be used: {words}: {error}") from error
