"""A store in memory that loses records: restored snapshots, and records that somebody deletes or damages."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from meshwright.records.contract import Changes, Record, ReplicaId
from meshwright.records.key import Key, key_of
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.records.recovery.domain import Domain, Identity
from meshwright.records.recovery.healer import Pauses
from meshwright.records.recovery.local_copy import LocalCopy
from meshwright.records.recovery.store import HealedRecords
from tests.tools.shared_records import FaultyRecords

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
SEAL = key_of("seal")
PAUSES = Pauses(patience=0.01, again=0.001, keep=0.001)


class LossyMemory(Memory):
    """The records of a store, which somebody restores from a snapshot or deletes."""

    def restore(self, snapshot: dict[Key, Record]) -> None:
        """Put all records back to a snapshot, and deliver the differences, as after a break."""
        for key in [key for key in self.records if key not in snapshot]:
            self.drop(key)
        for key, record in snapshot.items():
            if self.records.get(key) != record:
                self.put(key, record.content)


@dataclass
class Replica:
    """One server: its healed store, the connection below it, and what its receivers know."""

    connection: FaultyRecords
    records: HealedRecords
    heard: dict[Key, Record] = field(default_factory=dict)
    lists: list[Changes] = field(default_factory=list)

    def receive(self, changes: Changes) -> None:
        """Take changes as a part of the server does."""
        self.lists.append(changes)
        self.heard |= {record.key: record for record in changes.records}
        for key in changes.removed:
            self.heard.pop(key, None)

    def contents(self) -> dict[Key, bytes]:
        """Return the contents that the receivers know."""
        return {key: record.content for key, record in self.heard.items()}


def replica_of(
    memory: Memory,
    name: str,
    domains: Sequence[Domain],
    local_copy: LocalCopy | None = None,
    now: datetime = NOW,
) -> Replica:
    """Return a server that does not run yet."""
    connection = FaultyRecords(MemoryRecords(memory, ReplicaId(name)))
    identity = Identity(SEAL, lambda one, other: one.fields == other.fields)
    healed = HealedRecords(connection, ReplicaId(name), domains, identity, lambda: now, local_copy, PAUSES)
    return Replica(connection, healed)


@asynccontextmanager
async def running(*replicas: Replica, prefixes: Sequence[Key]) -> AsyncIterator[None]:
    """Run servers: each follows the prefixes, and heals."""
    async with AsyncExitStack() as stack:
        tasks: list[asyncio.Task[None]] = []
        for replica in replicas:
            await replica.records.begin()
            tasks.append(asyncio.ensure_future(replica.records.heal()))
            follows = (replica.records.follow(prefix, replica.receive) for prefix in prefixes)
            tasks += [asyncio.ensure_future(follow) for follow in follows]
        stack.push_async_callback(_end, tasks)
        yield


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        assert not task.done(), task.result()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
