"""Verdicts in the records of proxies, from the thread of the store to the server's event loop."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from catalog.policy.units import UnitId
from certs.shared_records.domains import name_of_record
from meshwright.delivery.quarantine.verdict_fields import REJECTED, verdicts_in
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import Changes, Record
from meshwright.records.key import Key
from xds.cache import NodeKey

_MARK: Final = f'"{REJECTED}"'.encode()

_log = structlog.get_logger("controller.sharing.rejections")


@dataclass(frozen=True, slots=True)
class StoredRejections:
    """The verdicts in the record of one proxy; `count` is the number of writes of the record.

    Both are empty for a record that is gone.
    """

    node: NodeKey
    count: int = 0
    verdicts: Mapping[UnitId, Verdict] = field(default_factory=dict)


class RejectionFeed:
    """Queue of changed verdicts; `wake` is called in the thread of the store when there are any."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._queue: deque[tuple[StoredRejections, ...]] = deque()
        self._known: dict[Key, NodeKey] = {}
        self._logged: dict[Key, tuple[str, ...]] = {}

    def hear(self, changes: Changes, is_list: bool) -> None:
        """Take changes of records, or all of them (`is_list`); call this on the event loop of the store.

        For example, a record of shop-1 with one verdict more puts all verdicts on shop-1 into the queue.

        A record that cannot be read is passed over, so its last verdicts stay in force. The ledger, which
        reads the same records, logs its key.
        """
        news = [stored for record in changes.records if (stored := self._taken(record)) is not None]
        there = {record.key for record in changes.records} if is_list else frozenset()
        gone = self._known.keys() - there if is_list else self._known.keys() & set(changes.removed)
        news += [StoredRejections(self._known.pop(key)) for key in sorted(gone)]
        if news:
            self._queue.append(tuple(news))
            self._wake()

    def take(self) -> Iterator[StoredRejections]:
        """Take the changes out of the queue, in order; for the server's event loop."""
        while self._queue:
            yield from self._queue.popleft()

    def _taken(self, record: Record) -> StoredRejections | None:
        """Return the verdicts in a record; `None` if there are none, and were none before."""
        # Nearly all records have none, and need not be decoded a second time.
        if record.key not in self._known and _MARK not in record.content:
            return None
        try:
            node = NodeKey(str(name_of_record(record.key)))
            content = Content.decode(record.content)
        except UnreadableContentError:
            return None
        stored = read_rejections(node, content.count, content.fields)
        self._log_unreadable(record.key, verdicts_in(node, content.fields).unreadable)
        if stored.verdicts:
            self._known[record.key] = node
        else:
            self._known.pop(record.key, None)
        return stored

    def _log_unreadable(self, key: Key, sentences: tuple[str, ...]) -> None:
        """Log the verdicts that cannot be read, once for each change of them."""
        if sentences and self._logged.get(key) != sentences:
            _log.error("rejections of a proxy cannot be read", key=key, reason="; ".join(sentences))
        if sentences:
            self._logged[key] = sentences
        else:
            self._logged.pop(key, None)


def read_rejections(node: NodeKey, count: int, fields: Fields | None) -> StoredRejections:
    """Return the readable verdicts in the fields of a record."""
    verdicts = verdicts_in(node, fields).verdicts
    return StoredRejections(node, count, {verdict.unit: verdict for verdict in verdicts})
