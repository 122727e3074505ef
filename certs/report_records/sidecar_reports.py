"""Records of the sidecars at each server that lack the roots of a new issuer; all servers share the records.

The server `a-5fd8` has the record `sidecars/a-5fd8` while it waits for its sidecars:

    {"roots": "5f2c8a...", "count": 12, "first": ["a1.cart.shop"], "number": 3, "proof": "9b1d..."}
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from certs.errors import StateError
from certs.report_records.server_records import ServerRecords
from certs.state.sealing import RecordSeal
from meshwright.records.content import Fields, UnreadableContentError
from meshwright.records.contract import RecordsError, RecordStore, ReplicaId
from meshwright.records.key import Key, key_of, words_of

SIDECARS: Final = key_of("sidecars")
"""Common beginning of the keys of all these records."""

_NAMED: Final = 10


class SidecarReports:
    """A server's view of the records. `follow` is for the event loop of the store.

    `write` and `remove` wait for the store, so they are for threads; `lacking` does not wait.
    """

    def __init__(
        self, store: RecordStore, replica: ReplicaId, loop: asyncio.AbstractEventLoop, seal: RecordSeal
    ) -> None:
        self._replica = replica
        self._known = ServerRecords(store, replica, loop, SIDECARS, _replica_of, seal)

    async def follow(self) -> None:
        """Keep the records up to date until cancelled."""
        await self._known.follow()

    def write(self, roots: str, lacking: Sequence[str]) -> None:
        """Record the sidecars of this server that lack the roots with this digest. Raises StateError."""
        fields: Fields = {"roots": roots, "count": len(lacking), "first": list(lacking[:_NAMED])}
        try:
            self._known.write({key_of(*words_of(SIDECARS), self._replica): fields})
        except (RecordsError, UnreadableContentError) as error:
            raise StateError(
                f"sidecars without the issuer's roots cannot be reported to the other servers: {error}"
            ) from error

    def remove(self, gone: Collection[ReplicaId]) -> None:
        """Remove the records of these servers. Raises StateError."""
        self._known.remove(gone)

    def servers(self) -> frozenset[ReplicaId]:
        """Return the servers that have a record."""
        return self._known.servers()

    def lacking(self, roots: str, here: Collection[ReplicaId]) -> tuple[str, ...]:
        """Return which other servers here have, or may have, sidecars without these roots.

        For example `2 sidecars of server b-77ab` and `server c-9310, which has not reported`.
        """
        reported = {_replica_of(key): fields for key, fields in self._known.proven().items()}
        result = []
        for name in sorted(set(here) - {self._replica}):
            fields = reported.get(name, {})
            count = fields.get("count")
            if fields.get("roots") != roots or type(count) is not int:
                result.append(f"server {name}, which has not reported")
            elif count:
                result.append(f"{count} sidecars of server {name}")
        return tuple(result)


def _replica_of(key: Key) -> ReplicaId:
    return ReplicaId(words_of(key)[-1])
