"""Records of service certificates in the memory of one server, as the store has delivered them."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

import structlog

from certs.pair_records.fields import end_in, is_of_service
from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import Changes
from meshwright.records.key import Key

_log = structlog.get_logger("certs.pair_records")


class KnownPairs:
    """The last content of each record. Only the event loop changes it; any thread may read.

    Contents are parsed when they are needed: the first list may have 10 000 certificates, and parsing all of
    them would stop the event loop for seconds. Private keys stay encrypted until then.
    """

    def __init__(self) -> None:
        self._contents: dict[Key, bytes] = {}
        self._lock = threading.Lock()

    def fields(self, key: Key) -> Fields | None:
        """Return the fields of a record, or None without one.

        An unreadable record, for example of a newer version, is logged and passed over.
        """
        with self._lock:
            content = self._contents.get(key)
        if content is None:
            return None
        try:
            return Content.decode(content).fields
        except UnreadableContentError as error:
            _log.error("record of a service certificate cannot be read", key=key, reason=str(error))
            return None

    def count(self) -> int:
        """Return the number of all records."""
        with self._lock:
            return len(self._contents)

    def ends(self) -> Iterator[datetime]:
        """Yield the end of validity of each certificate; damaged ones are passed over."""
        with self._lock:
            contents = tuple(self._contents.items())
        for key, content in contents:
            with suppress(UnreadableContentError):
                if is_of_service(key) and (end := end_in(Content.decode(content).fields)) is not None:
                    yield end

    def hear(self, changes: Changes, *, is_all: bool) -> frozenset[Key]:
        """Take changes of the store, or all its records; return the keys of services with another content."""
        news = {record.key: record.content for record in changes.records}
        with self._lock:
            removed = self._contents.keys() - news.keys() if is_all else changes.removed
            # The store also delivers own writes, which are known already.
            changed = {key for key, content in news.items() if self._contents.get(key) != content}
            changed.update(key for key in removed if self._contents.pop(key, None) is not None)
            self._contents.update(news)
        return frozenset(filter(is_of_service, changed))

    def take(self, key: Key, content: Content, encoded: bytes) -> None:
        """Take the content after a write of this server, unless a later one was delivered meanwhile."""
        with self._lock:
            present = self._contents.get(key)
            if present is None or _count(present) <= content.count:
                self._contents[key] = encoded


def _count(encoded: bytes) -> int:
    """Return the number of writes of a content; 0 if it is unreadable."""
    try:
        return Content.decode(encoded).count
    except UnreadableContentError:
        return 0
