"""Changes of the ledger's records. Everything here runs on the event loop of the store.

Each change is compared, and is called again after a change by another server. A change may also see its own
result, after a write whose outcome was not known, so each one leaves a record as it is where nothing is left
to do.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from certs.errors import StateError
from certs.ledger.contract import Judge
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.ledger.records.entries import SharedEntries
from certs.ledger.records.fields import (
    as_issued,
    entries_in,
    forgotten_in,
    key_of_proxy,
    merged,
    name_of_record,
    require_room,
    with_entries,
    without_entries,
)
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.contract import Record, RecordsError, RecordStore, TooLargeError
from meshwright.records.key import Key
from meshwright.records.update import Change, Version, Writer, remove, update

AT_ONCE: Final = 16
"""Number of records that are written at the same time."""

Staying = Callable[[tuple[LedgerEntry, ...]], Iterable[LedgerEntry]]
"""Return those certificates of a proxy that must not be forgotten. The function must be pure."""


class UnchangeableRecordsError(RecordsError):
    """Error for records that are left as they are: unreadable ones, and ones without room for a change."""


class RecordWrites:
    """Writer of the records of proxies. `entries` take each record as it is in the store after a write."""

    def __init__(self, store: RecordStore, writer: Writer, entries: SharedEntries) -> None:
        self._store = store
        self._writer = writer
        self._entries = entries
        self._known = entries.known
        self._stamps = entries.stamps

    async def record(self, entry: LedgerEntry, judge: Judge | None) -> None:
        """Add a certificate to its proxy's record, unless `judge` raises.

        `judge` is called before the write, with the entries that the write is compared with, and once more
        after the write, because a revocation may have come meanwhile. If `judge` raises only then, the
        certificate is revoked, because it is never handed out.
        """
        name = ProxyName.parse(entry.common_name)
        key = key_of_proxy(name)

        def judge_others(stored: Iterable[LedgerEntry]) -> None:
            if judge is not None:
                entries = merged(self._known.of(key), stored)
                judge(tuple(self._entries.shown(other) for other in entries if other.serial != entry.serial))

        def change(fields: Fields | None) -> Fields | None:
            stored = entries_in(name, fields)
            present = next((other for other in stored if other.serial == entry.serial), None)
            if present is not None:
                if as_issued(present) != as_issued(entry):
                    raise StateError(f"serial {entry.serial} is given to another certificate of {name}")
                return None
            judge_others(stored)
            after = with_entries(fields, (entry,))
            require_room(name, after or {})
            return after

        await self._update(key, change)
        try:
            judge_others(self._known.of(key))
        except Exception:
            self._stamps.note(entry, Stamp.REVOKED, StampDetail(entry.issued_at, "not handed out"))
            raise

    async def write(self, keys: Iterable[Key]) -> None:
        """Write the remembered stamps of these records, and what the store has lost of them.

        Raises UnchangeableRecordsError after all other records are written, and RecordsError at the first
        sign that the store does not answer.
        """
        rest, failed, unchangeable = iter(tuple(keys)), list[RecordsError](), list[str]()

        async def work() -> None:
            for key in rest:
                if failed:
                    return
                try:
                    await self._write(key)
                except (UnreadableContentError, TooLargeError) as error:
                    unchangeable.append(str(error))
                except RecordsError as error:
                    failed.append(error)

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        if failed:
            raise failed[0]
        if unchangeable:
            raise UnchangeableRecordsError("; ".join(sorted(unchangeable)))

    async def forget(self, key: Key, staying: Staying, *, removes: bool) -> bool:
        """Drop the certificates of a proxy that `staying` does not return; return whether any was dropped.

        If `removes`, a record without certificates is removed, after the write without them: so a server that
        hears only of the removal of certificates knows that nothing was lost. Both are compared, so that a
        proxy that joins or renews meanwhile keeps its certificate. A record in which the store has lost
        something is left as it is.
        """
        name, is_changed = name_of_record(key), False
        if key in self._known.behind():
            return False

        def change(fields: Fields | None) -> Fields | None:
            nonlocal is_changed
            stored = entries_in(name, fields)
            # The store may have lost a revocation before this server hears of it.
            there = {entry.serial for entry in stored}
            whole = (entry for entry in merged(self._known.of(key), stored) if entry.serial in there)
            left = {entry.serial for entry in staying(tuple(map(self._entries.shown, whole)))}
            after = without_entries(fields, there - left)
            is_changed = is_changed or after is not None
            return after

        version = await self._update(key, change)
        if removes and version.content is not None and not entries_in(name, version.content.fields):
            # `follow` tells of the removal, in order with a certificate that is recorded right after it.
            is_gone = await remove(self._store, key, lambda fields: not entries_in(name, fields))
            return is_changed or is_gone
        return is_changed

    async def _write(self, key: Key) -> None:
        name, known = name_of_record(key), self._known.of(key)
        noted = {entry.serial: dict(self._stamps.noted(entry.serial)) for entry in known}

        def change(fields: Fields | None) -> Fields | None:
            stored = entries_in(name, fields)
            # A deleted record is written again as it is known here, above all with its revocations.
            is_lost = fields is None or key in self._known.behind()
            missing = known if is_lost else _to_be_stamped(known, noted, fields)
            entries = merged(missing, stored)
            return with_entries(fields, (entry.stamped(noted.get(entry.serial, {})) for entry in entries))

        version = await self._update(key, change)
        written = entries_in(name, None if version.content is None else version.content.fields)
        for serial in noted.keys() & {entry.serial for entry in written}:
            self._stamps.forget(serial, noted[serial])

    async def _update(self, key: Key, change: Change) -> Version:
        version = await update(self._store, key, change, self._writer)
        # Before a written stamp is forgotten, so that it is in one of the two at each moment.
        record = None if version.revision is None else Record(key, version.encoded, version.revision)
        self._entries.take(key, record)
        return version


def _to_be_stamped(
    known: Iterable[LedgerEntry], noted: Mapping[str, Mapping[Stamp, StampDetail]], fields: Fields | None
) -> list[LedgerEntry]:
    """Return the known certificates that are to be stamped, unless a server has removed them in order.

    The store may have lost them before this server hears of it, and a stamp must not be lost with them. A
    revocation is written in any case.
    """
    removed = forgotten_in(fields)
    return [
        entry
        for entry in known
        if (stamps := noted.get(entry.serial)) and (Stamp.REVOKED in stamps or entry.serial not in removed)
    ]
