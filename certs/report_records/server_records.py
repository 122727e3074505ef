"""Records of which each belongs to one server, as this server has followed them."""

import asyncio
import threading
from collections.abc import Callable, Collection
from contextlib import suppress

from certs.errors import StateError
from meshwright.records.contract import (
    Changes,
    Record,
    RecordsError,
    RecordStore,
    ReplicaId,
    WriteConflictError,
)
from meshwright.records.key import Key
from meshwright.records.threads import ThreadCalls


class ServerRecords:
    """The records within a prefix; `replica_of` returns the server of a key.

    `follow` is for the event loop of the store. `remove` waits for the store, so it is for threads. The other
    methods do not wait, and may be called from any thread.
    """

    def __init__(
        self,
        store: RecordStore,
        loop: asyncio.AbstractEventLoop,
        prefix: Key,
        replica_of: Callable[[Key], ReplicaId],
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._replica_of = replica_of
        self._calls = ThreadCalls(loop)
        self._records: dict[Key, Record] = {}
        self._lock = threading.Lock()

    async def follow(self) -> None:
        """Keep the records up to date until cancelled."""
        is_first = True

        def hear(changes: Changes) -> None:
            nonlocal is_first
            with self._lock:
                # The first list is complete, also after an error has ended an earlier call.
                if is_first:
                    self._records.clear()
                is_first = False
                self._records.update({record.key: record for record in changes.records})
                for key in changes.removed:
                    self._records.pop(key, None)

        await self._store.follow(self._prefix, hear)

    def records(self) -> dict[Key, Record]:
        """Return all records as they were followed last."""
        with self._lock:
            return dict(self._records)

    def servers(self) -> frozenset[ReplicaId]:
        """Return the servers that have a record."""
        return frozenset(map(self._replica_of, self.records()))

    def remove(self, gone: Collection[ReplicaId]) -> None:
        """Remove the records of these servers. Raises StateError."""
        for key, record in self.records().items():
            if self._replica_of(key) not in gone:
                continue
            try:
                with suppress(WriteConflictError):  # gone, or written again meanwhile
                    self._calls.run(self._store.remove(key, record.revision))
            except RecordsError as error:
                raise StateError(f"an old report of a server cannot be removed: {error}") from error
