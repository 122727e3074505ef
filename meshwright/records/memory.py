"""Records in memory, for tests and simulations: several replicas of one process share a `Memory`."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field

import structlog

from meshwright.records.contract import (
    NO_LEADER,
    Changes,
    Epoch,
    Knowledge,
    Record,
    ReplicaId,
    Revision,
    WriteConflictError,
    require_size,
)
from meshwright.records.key import Key, is_within

_log = structlog.get_logger("records.memory")

Receive = Callable[[Changes], None]


@dataclass
class Memory:
    """Content of a store: the records, and the present replicas. For one event loop."""

    records: dict[Key, Record] = field(default_factory=dict)
    writes: int = 0
    epoch: Epoch = NO_LEADER
    leading: asyncio.Lock = field(default_factory=asyncio.Lock)
    followers: list[tuple[Key, Receive]] = field(default_factory=list)
    states: dict[ReplicaId, bytes] = field(default_factory=dict)
    watchers: list[Callable[[Mapping[ReplicaId, bytes]], None]] = field(default_factory=list)

    def put(self, key: Key, content: bytes) -> Record:
        """Store a content under a key, and deliver the change."""
        self.writes += 1
        record = self.records[key] = Record(key, content, Revision(str(self.writes)))
        self._deliver(key, Changes((record,)))
        return record

    def drop(self, key: Key) -> None:
        """Remove a record, and deliver the change."""
        del self.records[key]
        self._deliver(key, Changes(removed=(key,)))

    def show(self, replica: ReplicaId, state: bytes | None) -> None:
        """Set the state of a replica, or remove the replica where the state is None; deliver a change."""
        if self.states.get(replica) == state:
            return
        if state is None:
            del self.states[replica]
        else:
            self.states[replica] = state
        for receive in tuple(self.watchers):
            receive(dict(self.states))

    def _deliver(self, key: Key, changes: Changes) -> None:
        for prefix, receive in tuple(self.followers):
            if is_within(key, prefix):
                receive(changes)


class MemoryRecords:
    """Client of one replica; implements `meshwright.records.contract.RecordStore`.

    `renew_every` is the time between two renewals of the replica's presence, in seconds.
    """

    def __init__(self, memory: Memory, replica: ReplicaId, renew_every: float = 2.0) -> None:
        self._memory = memory
        self._replica = replica
        self._renew_every = renew_every

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key, or None."""
        await asyncio.sleep(0)  # as another store would, let other tasks run
        return self._memory.records.get(key)

    def last_known(self, key: Key) -> Knowledge | None:
        """Return None: this client keeps no records."""
        del key
        return None

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Replace the record with revision `before`, or create one."""
        require_size(key, content)
        await asyncio.sleep(0)
        self._compare(key, before)
        return self._memory.put(key, content)

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove the record with revision `before`."""
        await asyncio.sleep(0)
        self._compare(key, before)
        self._memory.drop(key)

    def _compare(self, key: Key, before: Revision | None) -> None:
        current = self._memory.records.get(key)
        if (None if current is None else current.revision) != before:
            raise WriteConflictError(key, current)

    async def follow(self, prefix: Key, receive: Receive) -> None:
        """Call `receive` with all records within a prefix, then with each change, until cancelled."""
        records = (record for key, record in self._memory.records.items() if is_within(key, prefix))
        receive(Changes(tuple(sorted(records, key=lambda record: record.key))))
        follower = (prefix, receive)
        self._memory.followers.append(follower)
        try:
            await asyncio.Event().wait()
        finally:
            self._memory.followers.remove(follower)

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[ReplicaId, bytes]], None]
    ) -> None:
        """Show this replica to the others until cancelled, and call `receive` with all replicas."""
        self._memory.show(self._replica, state())
        self._memory.watchers.append(receive)
        try:
            receive(dict(self._memory.states))
            while True:
                await asyncio.sleep(self._renew_every)
                self._memory.show(self._replica, state())
        finally:
            self._memory.watchers.remove(receive)
            self._memory.show(self._replica, None)

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Run `work` whenever this replica leads, until cancelled."""
        while True:
            async with self._memory.leading:
                self._memory.epoch = Epoch(self._memory.epoch + 1)
                try:
                    await work(self._memory.epoch)
                except Exception:  # noqa: BLE001 - the next term begins all the same
                    _log.exception("the work of a leader failed", replica=self._replica)
            await asyncio.sleep(self._renew_every)  # so that another replica comes first
