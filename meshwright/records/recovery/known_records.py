"""The followed records of one server, and the decision which of them the store has lost. A pure module.

    known      present in the store    decision
    count 7    count 8, nothing lost   take the present content
    count 7    count 5                 keep the known content, and write it again
    count 7    gone, must not vanish   keep the known content, and write it again
    count 7    gone, may vanish        forget it
    count 7    damaged, or newer form  keep the known content, and leave the record as it is

The domain of a record decides about losses, because each of two contents may lack a field of the other.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import Changes, Record, ReplicaId
from meshwright.records.key import Key, is_within
from meshwright.records.recovery.domain import Domain, domain_of

_log = structlog.get_logger("records.recovery")


class KnownRecords:
    """The last readable content of each followed record, with all fields that the store has lost since.

    `suspects` are the keys of records that the store seems to have lost. A list may be older than a read, so
    each suspect is read again before the write. `unconfirmed` are the keys of records that this server has
    written or read, and not followed yet: if such a record vanishes at once, no follower hears of it.
    `changed` has the keys with another content since the last save. Only for the event loop of the store.
    """

    def __init__(self, domains: Sequence[Domain], replica: ReplicaId) -> None:
        self._domains = tuple(domains)
        self._replica = replica
        self.records: dict[Key, Record] = {}
        self.suspects: set[Key] = set()
        self.changed: set[Key] = set()
        self.unconfirmed: set[Key] = set()
        self.damaged: dict[Key, str] = {}

    def load(self, records: Iterable[Record]) -> None:
        """Take the followed records of an earlier run."""
        self.records |= {record.key: record for record in records if self.domain(record.key) is not None}

    def within(self, prefix: Key) -> Changes:
        """Return all known records within a prefix."""
        return Changes(
            tuple(record for key, record in sorted(self.records.items()) if is_within(key, prefix))
        )

    def domain(self, key: Key) -> Domain | None:
        """Return the domain of a key, or None for a record without recovery."""
        return domain_of(self._domains, key)

    def missing_in(self, listed: Changes, prefix: Key) -> Changes:
        """Return a list as changes: known keys within the prefix are removed if the list lacks them."""
        there = {record.key for record in listed.records}
        gone = sorted(key for key in self.records if is_within(key, prefix) and key not in there)
        return Changes(listed.records, tuple(gone))

    def take(self, changes: Changes, now: datetime) -> Changes:
        """Take changes of the store, and return the changes for the receivers, without any loss."""
        records = [self._taken(record, now) for record in changes.records]
        removed = [key for key in changes.removed if self._is_gone(key, now)]
        return Changes(tuple(record for record in records if record is not None), tuple(removed))

    def mended(self, key: Key, present: Record | None, now: datetime) -> Content | None:
        """Return the content to write in the place of the present record, or None if nothing is lost.

        Raises UnreadableContentError for a record to be left unchanged.
        """
        known, domain = self.records.get(key), self.domain(key)
        if known is None or domain is None:
            return None
        before = Content.decode(known.content)
        there = None if present is None else Content.decode(present.content)
        fields = domain.mend(key, before, there, now)
        if fields is None or (there is not None and fields == there.fields):
            return None
        return self._after(before, there, fields)

    def settle(self, key: Key, present: Record | None) -> None:
        """Take the present record, in which nothing is lost any more."""
        self.suspects.discard(key)
        self.damaged.pop(key, None)
        self._set(key, present)

    def in_order(self, keys: Iterable[Key]) -> list[Key]:
        """Return suspects in the order of writing: urgent ones first, the others as each server likes.

        Each server begins elsewhere, so that several servers do not read and write the same record at once.
        """
        return sorted(keys, key=lambda key: (not self._is_urgent(key), _place(self._replica, key)))

    def damage(self, key: Key, reason: str) -> None:
        """Note that a record cannot be read, and log it once."""
        self.suspects.discard(key)
        if self.damaged.get(key) != reason:
            self.damaged[key] = reason
            _log.error("shared record cannot be read, and is left as it is", key=key, reason=reason)

    def _taken(self, record: Record, now: datetime) -> Record | None:
        """Return the record for receivers, with the lost fields, or None to keep the last one."""
        known = self.records.get(record.key)
        if known is not None and known.content == record.content:
            self.settle(record.key, record)
            return record
        try:
            content = Content.decode(record.content)
            lost = self._loss(record, content, now)
        except UnreadableContentError as error:
            self.damage(record.key, str(error))
            return record if known is None else None
        if known is None or lost is None:
            self.settle(record.key, record)
            return record
        self.damaged.pop(record.key, None)
        self.suspects.add(record.key)
        if lost.fields == Content.decode(known.content).fields:  # the receivers have it
            return None
        # Its count is not above the known one, so that the content written in the end is a later one.
        merged = Record(record.key, replace(lost, count=lost.count - 1).encode(), record.revision)
        self._set(record.key, merged)
        return merged

    def _loss(self, record: Record, content: Content, now: datetime) -> Content | None:
        """Return the result of `mended`; None also if only the known content cannot be read."""
        try:
            return self.mended(record.key, record, now)
        except UnreadableContentError:
            if (domain := self.domain(record.key)) is not None:
                domain.mend(record.key, content, content, now)  # raises for the present content
            return None

    def _is_gone(self, key: Key, now: datetime) -> bool:
        """Return whether a removed record is gone; otherwise it is lost, and stays known."""
        self.damaged.pop(key, None)
        try:
            lost = self.mended(key, None, now)
        except UnreadableContentError:  # kept by another version of this program
            lost = None
        if lost is None:
            self.settle(key, None)
            return True
        self.suspects.add(key)
        return False

    def _after(self, before: Content, there: Content | None, fields: Fields) -> Content:
        counts = (before.count, 0 if there is None else there.count)
        epoch = before.epoch if there is None else max(before.epoch, there.epoch)
        return Content(fields, self._replica, max(counts) + 1, epoch)

    def _set(self, key: Key, record: Record | None) -> None:
        if self.records.get(key) == record:
            return
        self.changed.add(key)
        if record is None:
            self.records.pop(key, None)
        elif self.domain(key) is not None:
            self.records[key] = record

    def _is_urgent(self, key: Key) -> bool:
        known, domain = self.records.get(key), self.domain(key)
        return (
            known is not None
            and domain is not None
            and domain.is_urgent(Content.decode(known.content).fields)
        )


def _place(replica: ReplicaId, key: Key) -> bytes:
    return hashlib.blake2b(f"{replica} {key}".encode(), digest_size=8).digest()
