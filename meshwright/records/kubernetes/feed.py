"""Feed of changes: from the differences of a reflector to the calls of one receiver.

The reflector keeps all objects to find differences, but contents are half of the memory, and receivers keep
their own form of them. The feed therefore drops each content as soon as the receiver has it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Key as ObjectKey
from meshwright.kube.resource import Raw
from meshwright.records.contract import Changes, Record
from meshwright.records.key import Key, is_within
from meshwright.records.kubernetes.objects import record_of

_log = structlog.get_logger("records.kubernetes")


class CachedRecord:
    """A record in the cache of a reflector; equal to another one with the same key and revision."""

    __slots__ = ("_record", "key", "revision")

    def __init__(self, raw: Raw) -> None:
        self._record: Record | None = record_of(raw)
        self.key, self.revision = self._record.key, self._record.revision

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CachedRecord):
            return NotImplemented
        return (self.key, self.revision) == (other.key, other.revision)

    __hash__ = None  # type: ignore[assignment]

    def pop(self) -> Record | None:
        """Return the record the first time, and drop it here."""
        record, self._record = self._record, None
        return record


class FeedNews:
    """News of one feed for the log: errors that begin or end, and unreadable objects."""

    def __init__(self, prefix: Key, reflector: Reflector[Any]) -> None:
        self._prefix, self._reflector = prefix, reflector
        self._error = self._unread = ""

    def log(self) -> None:
        """Log once why the records may be outdated, and each unreadable object."""
        figures = self._reflector.figures
        if figures.error and not self._error:
            _log.warning("records may be outdated", prefix=self._prefix, error=figures.error)
        elif self._error and not figures.error:
            _log.info("records are current again", prefix=self._prefix)
        if figures.unread != self._unread:
            _log.warning("record is unreadable", prefix=self._prefix, error=figures.unread)
        self._error, self._unread = figures.error, figures.unread


class Feed:
    """Calls of a receiver: one for the first list, also if it is empty, and one for each batch of changes."""

    def __init__(
        self, prefix: Key, receive: Callable[[Changes], None], reflector: Reflector[CachedRecord]
    ) -> None:
        self._prefix, self._receive, self._reflector = prefix, receive, reflector
        self._keys: dict[ObjectKey, Key] = {}
        self._is_first = True
        self._news = FeedNews(prefix, reflector)

    def take(self, changes: Mapping[ObjectKey, Item[CachedRecord] | None]) -> None:
        """Deliver the changes within the prefix; a reflector also calls with {} for news of an error."""
        self._news.log()
        if not self._reflector.listed.is_set():
            return
        result = self._within(changes)
        if result.records or result.removed or self._is_first:
            self._is_first = False
            self._receive(result)

    def _within(self, changes: Mapping[ObjectKey, Item[CachedRecord] | None]) -> Changes:
        records: list[Record] = []
        removed: list[Key] = []
        for object_key, item in changes.items():
            if item is None:
                if (key := self._keys.pop(object_key, None)) is not None:
                    removed.append(key)
            elif (record := item.body.pop()) is not None and is_within(record.key, self._prefix):
                self._keys[object_key] = record.key
                records.append(record)
        return Changes(tuple(sorted(records, key=_key)), tuple(sorted(removed)))


def _key(record: Record) -> Key:
    return record.key
