"""Records of which each belongs to one server, with proofs, as this server has followed and written them."""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Final

import structlog

from certs.errors import StateError
from certs.state.record_proofs import is_proven, with_proof, without_proof
from certs.state.sealing import RecordSeal
from meshwright.records.content import Content, Fields, UnreadableContentError
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
from meshwright.records.update import Change, Writer, update

_NUMBER: Final = "number"
"""Field that grows with each write of a server. A server that has seen a report ignores earlier ones.

A server that has just started accepts any report of this rotation with a proof.
"""

_log = structlog.get_logger("certs.report_records")


class ServerRecords:
    """The records within a prefix; `replica_of` returns the server of a key.

    A record counts only with the proof that a server of the mesh has written it: otherwise, whoever may write
    records could claim that proxies have new roots. `follow` is for the event loop of the store. `write` and
    `remove` wait for the store, so they are for threads. The other methods do not wait, and may be called
    from any thread.
    """

    def __init__(
        self,
        store: RecordStore,
        replica: ReplicaId,
        loop: asyncio.AbstractEventLoop,
        prefix: Key,
        replica_of: Callable[[Key], ReplicaId],
        seal: RecordSeal,
    ) -> None:
        self._store = store
        self._replica = replica
        self._prefix = prefix
        self._replica_of = replica_of
        self._seal = seal
        self._calls = ThreadCalls(loop)
        self._records: dict[Key, Record] = {}
        self._written: dict[Key, Fields] = {}
        self._writes = 0
        self._newest: dict[Key, int] = {}
        self._refused: dict[Key, str] = {}
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

    def proven(self) -> dict[Key, Fields]:
        """Return the fields of all records that servers of the mesh have written last, sorted by key.

        Records that cannot be read, forged ones and earlier ones are left out, and logged once.
        """
        result: dict[Key, Fields] = {}
        for key, record in sorted(self._followed().items()):
            try:
                result[key] = self._fields(key, record)
            except UnreadableContentError as error:
                self._refuse(key, str(error))
            else:
                self._refused.pop(key, None)
        return result

    def servers(self) -> frozenset[ReplicaId]:
        """Return the servers that have a record."""
        return frozenset(map(self._replica_of, self._followed()))

    def write(self, parts: Mapping[Key, Fields]) -> None:
        """Write the records of this server that differ from what was followed last, and remove others of it.

        Raises RecordsError and UnreadableContentError.
        """
        own = {key: one for key, one in self._followed().items() if self._replica_of(key) == self._replica}
        self._calls.run(self._write(parts, own))

    def remove(self, gone: Collection[ReplicaId]) -> None:
        """Remove the records of these servers. Raises StateError."""
        for key, record in self._followed().items():
            if self._replica_of(key) not in gone:
                continue
            try:
                with suppress(WriteConflictError):  # gone, or written again meanwhile
                    self._calls.run(self._store.remove(key, record.revision))
            except RecordsError as error:
                raise StateError(f"an old report of a server cannot be removed: {error}") from error

    def _followed(self) -> dict[Key, Record]:
        with self._lock:
            return dict(self._records)

    def _fields(self, key: Key, record: Record) -> Fields:
        """Return the fields without proof and number; raise UnreadableContentError."""
        fields = Content.decode(record.content).fields
        if not is_proven(fields, key, self._seal):
            raise UnreadableContentError(
                "no server of this mesh has written it, or it was changed: find out who may write records"
            )
        number = fields.get(_NUMBER)
        if not isinstance(number, int) or number < self._newest.get(key, 0):
            raise UnreadableContentError(
                "it is an earlier report, which somebody has written again: find out who may write records"
            )
        self._newest[key] = number
        return {name: value for name, value in without_proof(fields).items() if name != _NUMBER}

    def _refuse(self, key: Key, reason: str) -> None:
        if self._refused.get(key) != reason:
            self._refused[key] = reason
            _log.error("report of a server is ignored", replica=self._replica_of(key), key=key, reason=reason)

    async def _write(self, parts: Mapping[Key, Fields], own: Mapping[Key, Record]) -> None:
        for key, fields in parts.items():
            wanted = self._numbered(key, fields)
            if key not in own or Content.decode(own[key].content).fields != wanted:
                await update(self._store, key, _always(wanted), Writer(self._replica))
        for key in own.keys() - parts.keys():
            with suppress(WriteConflictError):
                await self._store.remove(key, own[key].revision)

    def _numbered(self, key: Key, fields: Fields) -> Fields:
        """Return the fields with number and proof; equal ones keep theirs, so that they are written once."""
        before = self._written.get(key)
        if before is None or without_proof(before) != {**fields, _NUMBER: before[_NUMBER]}:
            self._writes += 1
            self._written[key] = with_proof({**fields, _NUMBER: self._writes}, key, self._seal)
        return self._written[key]


def _always(fields: Fields) -> Change:
    """Return a change to these fields, whatever is there: a server alone writes its records."""
    return lambda there: None if there == fields else fields
