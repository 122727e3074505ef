"""The reports of all servers in a root rotation, in records that they share."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress

import structlog

from certs.errors import StateError
from certs.report_records.fields import REPORTS, key_of_report, parts_of, replica_of, report_in
from certs.report_records.server_records import ServerRecords
from certs.roots.rotation import Rotation
from certs.roots.server_report import Reports, ServerReport
from meshwright.records.content import Content, Fields, UnreadableContentError
from meshwright.records.contract import (
    Record,
    RecordsError,
    RecordStore,
    ReplicaId,
    WriteConflictError,
)
from meshwright.records.key import Key, words_of
from meshwright.records.threads import ThreadCalls
from meshwright.records.update import Change, Writer, update

_log = structlog.get_logger("certs.report_records")


class RecordedReports:
    """A server's view of the reports of all servers.

    `follow` keeps them up to date, on the event loop of the store. `write` and `remove` wait for the store,
    so they are for threads; `others` does not wait.
    """

    def __init__(self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._replica = replica
        self._writer = Writer(replica)
        self._calls = ThreadCalls(loop)
        self._known = ServerRecords(store, loop, REPORTS, replica_of)

    async def follow(self) -> None:
        """Keep the reports up to date until cancelled."""
        await self._known.follow()

    def others(self, here: Collection[ReplicaId], rotation: Rotation) -> Reports:
        """Return the reports of these other servers; None for a server without a readable report."""
        records = sorted(self._known.records().values(), key=lambda record: _number(record.key))
        parts: dict[ReplicaId, list[Record]] = {}
        for record in records:
            parts.setdefault(replica_of(record.key), []).append(record)
        return {name: _report(name, parts.get(name, []), rotation) for name in here if name != self._replica}

    def write(self, report: ServerReport, rotation: Rotation) -> None:
        """Write the report of this server, as far as another one is stored. Raises StateError."""
        parts = parts_of(report, rotation)
        records = self._known.records()
        own = {key: record for key, record in records.items() if replica_of(key) == self._replica}
        try:
            self._calls.run(self._write(parts, own))
        except (RecordsError, UnreadableContentError) as error:
            raise StateError(f"the report to the other servers cannot be written: {error}") from error

    def remove(self, gone: Collection[ReplicaId]) -> None:
        """Remove the reports of these servers. Raises StateError."""
        self._known.remove(gone)

    def servers(self) -> frozenset[ReplicaId]:
        """Return the servers that have a report."""
        return self._known.servers()

    async def _write(self, parts: tuple[Fields, ...], own: Mapping[Key, Record]) -> None:
        """Write parts that differ from what was followed last, and remove parts that are too many."""
        keys = [key_of_report(self._replica, number) for number in range(len(parts))]
        for key, fields in zip(keys, parts, strict=True):
            if key not in own or Content.decode(own[key].content).fields != fields:
                await update(self._store, key, _always(fields), self._writer)
        for key in own.keys() - set(keys):
            with suppress(WriteConflictError):
                await self._store.remove(key, own[key].revision)


def _always(fields: Fields) -> Change:
    """Return a change to these fields, whatever is there: a server alone writes its report."""
    return lambda there: None if there == fields else fields


def _number(key: Key) -> int:
    word = words_of(key)[-1]
    return int(word) if word.isdecimal() else 0


def _report(name: ReplicaId, records: list[Record], rotation: Rotation) -> ServerReport | None:
    """Return the report in these records of a server; None without one, or for an unreadable one."""
    if not records or _number(records[0].key) != 0:
        return None
    try:
        return report_in([Content.decode(record.content).fields for record in records], rotation)
    except UnreadableContentError as error:
        _log.error("report of another server cannot be read", replica=name, reason=str(error))
        return None
