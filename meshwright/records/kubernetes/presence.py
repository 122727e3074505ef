"""Presence of replicas, judged by the renewals of their records. A pure module.

Each replica renews its own record `replicas/ID` every few seconds, and follows the records of all. A replica
is gone after four renewals of one's own record in which the other record has not changed. One's own record
arrives over the same watch as the others', so the judgement pauses while the store is away. Clocks of
other machines, and pauses of this process, are without influence too.
"""

import base64
from dataclasses import dataclass
from typing import Final

from meshwright.records.content import Content, UnreadableContentError
from meshwright.records.contract import Changes, Record, ReplicaId, Revision
from meshwright.records.key import Key, key_of, words_of

REPLICAS: Final = key_of("replicas")

GONE_AFTER: Final = 4
"""Own renewals after which another replica without a renewal is gone: 15 to 20 s, with one every 5 s."""

FORGOTTEN_AFTER: Final = 24
"""Own renewals after which the record of a silent replica is removed: two minutes."""


def key_of_replica(replica: ReplicaId) -> Key:
    """Return the key of a replica's record; raises ValueError for an unsuitable id."""
    return key_of(*words_of(REPLICAS), replica)


def presence_content(replica: ReplicaId, state: bytes, count: int) -> bytes:
    """Return the content of a replica's record, which is another one for each count."""
    return Content({"state": base64.b64encode(state).decode()}, replica, count).encode()


@dataclass(slots=True)
class _Observation:
    """A replica's last record, and one's own renewals since."""

    record: Record
    state: bytes
    missed: int = 0


class Presence:
    """The present replicas, as the replica `me` sees them."""

    def __init__(self, me: ReplicaId) -> None:
        self._me = me
        self._seen: dict[ReplicaId, _Observation] = {}
        self._delivered: dict[ReplicaId, bytes] | None = None

    def take(self, changes: Changes) -> dict[ReplicaId, bytes] | None:
        """Take changes of records; return the states of all present replicas, or None without news.

        News begins with one's own record. Unreadable records are left out.
        """
        for key in changes.removed:
            self._seen.pop(_replica_of(key), None)
        if any(_replica_of(record.key) == self._me for record in changes.records):
            for seen in self._seen.values():
                seen.missed += 1
        for record in changes.records:
            self._take(record)
        here = {name: seen.state for name, seen in sorted(self._seen.items()) if seen.missed < GONE_AFTER}
        if here == self._delivered or (self._delivered is None and self._me not in here):
            return None
        self._delivered = here
        return dict(here)

    def forgotten(self) -> list[tuple[Key, Revision]]:
        """Return the records to remove, because their replicas ended long ago without removing them."""
        return [
            (seen.record.key, seen.record.revision)
            for seen in self._seen.values()
            if seen.missed >= FORGOTTEN_AFTER
        ]

    def _take(self, record: Record) -> None:
        replica = _replica_of(record.key)
        try:
            text = str(Content.decode(record.content).fields.get("state", ""))
            self._seen[replica] = _Observation(record, base64.b64decode(text, validate=True))
        except (UnreadableContentError, ValueError):
            self._seen.pop(replica, None)


def _replica_of(key: Key) -> ReplicaId:
    return ReplicaId(words_of(key)[-1])
