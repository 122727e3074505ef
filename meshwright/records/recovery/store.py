"""A store with recovery: lost records are written again, and a server can start while the store is away."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime

import structlog

from meshwright.records.contract import (
    Changes,
    Epoch,
    Knowledge,
    Record,
    RecordStore,
    ReplicaId,
    Revision,
    StoreUnavailableError,
)
from meshwright.records.key import Key, is_within
from meshwright.records.recovery.domain import Domain, Identity, domain_of
from meshwright.records.recovery.healer import PAUSES, Healer, Pauses
from meshwright.records.recovery.known_records import KnownRecords
from meshwright.records.recovery.local_copy import LocalCopy, NoCopy

_log = structlog.get_logger("records.recovery")


class HealedRecords:
    """A RecordStore around another one, which heals the records of `domains`.

    Receivers of `follow` never hear of a loss: they keep the followed content. Writes, and reads of single
    records, are those of the other store. For the event loop of the store; `begin` comes before all others.

    `identity` is the record that identifies the mesh of the store. Kept records are not written into the
    store of another mesh, nor into a store without a mesh, for example after a change of the settings.
    """

    def __init__(
        self,
        store: RecordStore,
        replica: ReplicaId,
        domains: Sequence[Domain],
        identity: Identity,
        clock: Callable[[], datetime],
        local_copy: LocalCopy | None = None,
        pauses: Pauses = PAUSES,
    ) -> None:
        self._store, self._clock, self._pauses = store, clock, pauses
        self._domains = tuple(domains)
        self._known = KnownRecords(domains, replica)
        self._healer = Healer(store, self._known, identity, clock, pauses)
        self._copy: LocalCopy = local_copy or NoCopy()
        self._has_kept = self._has_answered = self._is_degraded = False
        self._error = ""
        self._listed: set[Key] = set()

    @property
    def has_answered(self) -> bool:
        """Return whether the store has answered at all. May be called from any thread."""
        return self._has_answered

    async def begin(self) -> None:
        """Take the records that an earlier run has kept, unless the store is another mesh's.

        Raises RecordsError.
        """
        self._known.load(await asyncio.to_thread(self._copy.load))
        self._has_kept = bool(self._known.records)
        try:
            is_same = await self._healer.compare()
        except StoreUnavailableError:
            return
        if not is_same:
            _log.warning("the store is not the one of the kept records, which are dropped")
            self._known.changed |= self._known.records.keys()
            self._known.records.clear()
            self._has_kept = False

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key, or None.

        Until the store has answered once, a record that is needed for the start is read from the kept ones. A
        later write is safe all the same, because the store compares the revision.
        """
        try:
            record = await self._store.read(key)
        except StoreUnavailableError:
            if (kept := self._kept(key)) is None:
                raise
            return kept
        self._has_answered = True
        return record

    def last_known(self, key: Key) -> Knowledge | None:
        """Return the record as it was followed, written or kept last; None for one that may exist unseen."""
        record = self._known.records.get(key)
        if record is not None:
            return Knowledge(record)
        is_listed = any(is_within(key, prefix) for prefix in self._listed)
        return Knowledge() if is_listed and key not in self._known.damaged else None

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Replace the record with revision `before`, or create one."""
        record = await self._store.write(key, content, before)
        self._has_answered = True
        # The store may lose the record before it is followed.
        self._take(Changes((record,)))
        self._known.unconfirmed.add(key)
        return record

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove the record with revision `before`."""
        await self._store.remove(key, before)

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Call `receive` with all records within a prefix, then with each change, until cancelled.

        If the store has not answered at all within the patience, the first call has the kept records.
        """
        if domain_of(self._domains, prefix) is None:
            await self._store.follow(prefix, receive)
            return
        is_listed = is_delivered = False
        kept: dict[Key, Record] = {}

        def hear(changes: Changes) -> None:
            nonlocal is_listed, is_delivered
            heard = (*(record.key for record in changes.records), *changes.removed)
            self._known.unconfirmed.difference_update(heard)
            if is_listed:
                _deliver(self._take(changes), receive)
                return
            taken = self._take(self._known.missing_in(changes, prefix))
            first = self._known_within(prefix, taken)
            _deliver(_difference(kept, first, taken.removed) if is_delivered else first, receive)
            if not is_delivered and first == Changes():
                receive(first)
            is_listed = is_delivered = self._has_answered = True
            self._listed.add(prefix)
            kept.clear()

        def go_on() -> None:
            nonlocal is_delivered
            if is_delivered or self._has_answered or not self._has_kept:
                return
            is_delivered, known = True, self._known.within(prefix)
            kept.update({record.key: record for record in known.records})
            self._say_degraded()
            receive(known)

        timer = asyncio.get_running_loop().call_later(self._pauses.patience, go_on)
        try:
            await self._store.follow(prefix, hear)
        finally:
            timer.cancel()
            self._listed.discard(prefix)

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[ReplicaId, bytes]], None]
    ) -> None:
        """Show this replica to the others until cancelled, and call `receive` with all replicas."""
        await self._store.announce(state, receive)

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Run `work` whenever this replica leads, until cancelled."""
        await self._store.lead(work)

    async def heal(self) -> None:
        """Write lost records again, until cancelled; a store that is away is tried again.

        Raises RecordsError if this server has begun without the store, and the store is another mesh's.
        """
        await self._healer.run()

    async def keep(self) -> None:
        """Keep the followed records for the next start, until cancelled; an error is logged."""
        while True:
            await asyncio.sleep(self._pauses.keep)
            await self.keep_now()

    async def keep_now(self) -> None:
        """Keep the records that have changed since the last call."""
        keys, self._known.changed = self._known.changed, set()
        if not keys:
            return
        changes = {key: self._known.records.get(key) for key in keys}
        try:
            await asyncio.to_thread(self._copy.keep, changes)
        except asyncio.CancelledError:
            self._known.changed |= keys  # the call may not have begun
            raise
        except OSError as error:
            self._known.changed |= keys
            if (reason := str(error)) != self._error:
                _log.warning("followed records are not kept for a start without the store", reason=reason)
            self._error = reason
        else:
            self._error = ""

    def counts(self) -> Mapping[str, int]:
        """Return the number of followed records of each domain by its prefix, if there are any."""
        return Counter(
            domain.prefix for key in self._known.records if (domain := self._known.domain(key)) is not None
        )

    def remarks(self) -> tuple[str, ...]:
        """Return remarks about damaged records, and about lost ones that cannot be written again."""
        result = []
        if damaged := dict(self._known.damaged):
            key, reason = min(damaged.items())
            number = f" (and {len(damaged) - 1} more, see the log)" if len(damaged) > 1 else ""
            result.append(f"shared record {key} cannot be read, and is left as it is: {reason}{number}")
        if self._healer.error and (suspects := len(self._known.suspects)):
            result.append(f"{suspects} lost records are not written again yet: {self._healer.error}")
        return tuple(result)

    def _kept(self, key: Key) -> Record | None:
        domain = self._known.domain(key)
        if self._has_answered or domain is None or not domain.needed_at_start:
            return None
        record = self._known.records.get(key)
        if record is not None:
            self._say_degraded()
        return record

    def _say_degraded(self) -> None:
        if not self._is_degraded:
            self._is_degraded = True
            _log.warning(
                "the shared store does not answer; the server starts with the records that it followed last",
                records=len(self._known.records),
            )

    def _take(self, changes: Changes) -> Changes:
        taken = self._known.take(changes, self._clock())
        if self._known.suspects:
            self._healer.wake()
        return taken

    def _known_within(self, prefix: Key, taken: Changes) -> Changes:
        """Return the first list: all known records, and damaged ones, which receivers may know to handle."""
        known = self._known.within(prefix)
        keys = {record.key for record in known.records}
        others = tuple(record for record in taken.records if record.key not in keys)
        return Changes((*known.records, *others))


def _difference(before: Mapping[Key, Record], after: Changes, removed: tuple[Key, ...]) -> Changes:
    """Return the records with another content than before, and the removed ones."""
    news = (record for record in after.records if before.get(record.key) != record)
    return Changes(tuple(news), removed)


def _deliver(changes: Changes, receive: Callable[[Changes], None]) -> None:
    if changes != Changes():
        receive(changes)
