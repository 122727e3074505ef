"""Feed of changes: from the differences of a reflector to the calls of one receiver."""

from collections.abc import Callable, Mapping

import structlog

from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Key as ObjectKey
from meshwright.records.contract import Changes, Record
from meshwright.records.key import Key, is_within

_log = structlog.get_logger("records.kubernetes")


class Feed:
    """Calls of a receiver: one for the first list, also if it is empty, and one for each batch of changes."""

    def __init__(self, prefix: Key, receive: Callable[[Changes], None], reflector: Reflector[Record]) -> None:
        self._prefix, self._receive, self._reflector = prefix, receive, reflector
        self._keys: dict[ObjectKey, Key] = {}
        self._is_first = True
        self._error = self._unread = ""

    def take(self, changes: Mapping[ObjectKey, Item[Record] | None]) -> None:
        """Deliver the changes within the prefix; a reflector also calls with {} for news of an error."""
        self._log_news()
        if not self._reflector.listed.is_set():
            return
        result = self._within(changes)
        if result.records or result.removed or self._is_first:
            self._is_first = False
            self._receive(result)

    def _within(self, changes: Mapping[ObjectKey, Item[Record] | None]) -> Changes:
        records: list[Record] = []
        removed: list[Key] = []
        for object_key, item in changes.items():
            if item is None:
                if (key := self._keys.pop(object_key, None)) is not None:
                    removed.append(key)
            elif is_within(item.body.key, self._prefix):
                self._keys[object_key] = item.body.key
                records.append(item.body)
        return Changes(tuple(sorted(records, key=_key)), tuple(sorted(removed)))

    def _log_news(self) -> None:
        """Log once why the records may be outdated, and each unreadable object."""
        figures = self._reflector.figures
        if figures.error and not self._error:
            _log.warning("records may be outdated", prefix=self._prefix, error=figures.error)
        elif self._error and not figures.error:
            _log.info("records are current again", prefix=self._prefix)
        if figures.unread != self._unread:
            _log.warning("record is unreadable", prefix=self._prefix, error=figures.unread)
        self._error, self._unread = figures.error, figures.unread


def _key(record: Record) -> Key:
    return record.key
