"""The reports of all servers in a root rotation, in records that they share."""

import asyncio
from collections.abc import Collection, Sequence

import structlog

from certs.errors import StateError
from certs.report_records.fields import REPORTS, key_of_report, parts_of, replica_of, report_in
from certs.report_records.server_records import ServerRecords
from certs.roots.rotation import Rotation
from certs.roots.server_report import Reports, ServerReport
from certs.state.sealing import RecordSeal
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.contract import RecordsError, RecordStore, ReplicaId
from meshwright.records.key import Key, words_of

_log = structlog.get_logger("certs.report_records")


class RecordedReports:
    """A server's view of the reports of all servers.

    `follow` keeps them up to date, on the event loop of the store. `write` and `remove` wait for the store,
    so they are for threads; `others` does not wait.
    """

    def __init__(
        self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop, seal: RecordSeal
    ) -> None:
        self._replica = replica
        self._known = ServerRecords(store, replica, loop, REPORTS, replica_of, seal)

    async def follow(self) -> None:
        """Keep the reports up to date until cancelled."""
        await self._known.follow()

    def others(self, here: Collection[ReplicaId], rotation: Rotation) -> Reports:
        """Return the reports of these other servers; None for a server without a readable report.

        A report that no server of the mesh has written, or an earlier one, counts as none.
        """
        parts: dict[ReplicaId, dict[int, Fields]] = {}
        for key, fields in self._known.proven().items():
            parts.setdefault(replica_of(key), {})[_number(key)] = fields
        return {name: _report(name, parts.get(name, {}), rotation) for name in here if name != self._replica}

    def write(self, report: ServerReport, rotation: Rotation) -> None:
        """Write the report of this server, as far as another one is stored. Raises StateError."""
        parts = enumerate(parts_of(report, rotation))
        try:
            self._known.write({key_of_report(self._replica, number): fields for number, fields in parts})
        except (RecordsError, UnreadableContentError) as error:
            raise StateError(f"the report to the other servers cannot be written: {error}") from error

    def remove(self, gone: Collection[ReplicaId]) -> None:
        """Remove the reports of these servers. Raises StateError."""
        self._known.remove(gone)

    def servers(self) -> frozenset[ReplicaId]:
        """Return the servers that have a report."""
        return self._known.servers()


def _number(key: Key) -> int:
    word = words_of(key)[-1]
    return int(word) if word.isdecimal() else 0


def _report(name: ReplicaId, parts: dict[int, Fields], rotation: Rotation) -> ServerReport | None:
    """Return the report in these parts of a server; None without the first one, or for an unreadable one."""
    if 0 not in parts:
        return None
    in_order: Sequence[Fields] = [parts[number] for number in sorted(parts)]
    try:
        return report_in(in_order, rotation)
    except UnreadableContentError as error:
        _log.error("report of another server cannot be read", replica=name, reason=str(error))
        return None
