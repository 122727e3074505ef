"""Store of records in memory for all servers, with latency, outages and lost answers from a seed."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Final

from meshwright.records.contract import (
    Changes,
    Epoch,
    Knowledge,
    Record,
    ReplicaId,
    Revision,
    StoreUnavailableError,
    WriteConflictError,
)
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords

WRITE_SECONDS: Final = 0.004
READ_SECONDS: Final = 0.002
FOLLOW_SECONDS: Final = 0.02
"""Time from a write until the other servers get the change; changes within this time arrive together."""
DEADLINE_SECONDS: Final = 5.0
"""Time after which a call to a store that is away fails."""
RENEW_SECONDS: Final = 5.0
"""Time between two renewals of a server's presence, as in Kubernetes."""


@dataclass
class Store:
    """The content of the store, its faults, and the counted operations of all servers."""

    seed: int
    memory: Memory = field(default_factory=Memory)
    counts: Counter[str] = field(default_factory=Counter)
    lost_share: float = 0.0
    """Part of the writes whose answer is lost."""

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._present = asyncio.Event()
        self._present.set()
        self._away = asyncio.Event()

    @property
    def is_away(self) -> bool:
        """Return whether no server can use the store."""
        return self._away.is_set()

    def leave(self) -> None:
        """Take the store away from all servers."""
        self._present.clear()
        self._away.set()

    def come_back(self) -> None:
        """Give the store back."""
        self._away.clear()
        self._present.set()

    async def wait_away(self) -> None:
        """Wait until the store is away."""
        await self._away.wait()

    async def wait_present(self) -> None:
        """Wait until the store is there."""
        await self._present.wait()


class SimulatedRecords:
    """Client of one server, implementing `meshwright.records.contract.RecordStore`."""

    def __init__(self, store: Store, replica: ReplicaId) -> None:
        self._store = store
        self._records = MemoryRecords(store.memory, replica, RENEW_SECONDS)

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key, or None."""
        await self._pass("read", READ_SECONDS)
        return await self._records.read(key)

    def last_known(self, key: Key) -> Knowledge | None:
        """Return what the store knows about a record."""
        return self._records.last_known(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Replace the record with revision `before`, or create one."""
        await self._pass("write", WRITE_SECONDS)
        try:
            record = await self._records.write(key, content, before)
        except WriteConflictError:
            self._store.counts["conflict"] += 1
            raise
        self._store.counts["written bytes"] += len(content)
        # After the write: a lost answer means that the record has changed and the server does not know.
        self._answer()
        return record

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove the record with revision `before`."""
        await self._pass("removal", WRITE_SECONDS)
        await self._records.remove(key, before)
        self._answer()

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Follow a prefix; changes come late and together, and after an outage in their last form."""
        late: dict[Key, Record | None] = {}
        loop, is_first = asyncio.get_running_loop(), True

        def deliver() -> None:
            if self._store.is_away:
                # Collect on: after an outage a watch lists only the last form of each record.
                loop.call_later(1.0, deliver)
                return
            records = tuple(record for record in late.values() if record is not None)
            removed = tuple(key for key, record in late.items() if record is None)
            late.clear()
            self._store.counts["event"] += len(records) + len(removed)
            receive(Changes(records, removed))

        def hear(changes: Changes) -> None:
            nonlocal is_first
            if is_first:
                is_first = False
                self._store.counts["listed"] += len(changes.records)
                receive(changes)
                return
            if not late:
                loop.call_later(FOLLOW_SECONDS, deliver)
            late.update({record.key: record for record in changes.records})
            late.update(dict.fromkeys(changes.removed))

        await self._store.wait_present()
        await self._records.follow(prefix, hear)

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[ReplicaId, bytes]], None]
    ) -> None:
        """Show this server to the others; while the store is away, the last announced states stay."""
        said = b""

        def say() -> bytes:
            nonlocal said
            if not self._store.is_away or not said:
                self._store.counts["renewal"] += 1
                said = state()
            return said

        await self._records.announce(say, receive)

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Lead whenever the store lets this server lead, but not while it is away."""

        async def work_while_sure(epoch: Epoch) -> None:
            task = asyncio.ensure_future(work(epoch))
            away = asyncio.ensure_future(self._store.wait_away())
            try:
                await asyncio.wait((task, away), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for item in (task, away):
                    item.cancel()
                await asyncio.gather(task, away, return_exceptions=True)
            await self._store.wait_present()

        await self._records.lead(work_while_sure)

    async def _pass(self, call: str, seconds: float) -> None:
        self._store.counts[call] += 1
        if self._store.is_away:
            await asyncio.sleep(DEADLINE_SECONDS)
            raise StoreUnavailableError("the store does not answer")
        await asyncio.sleep(seconds * (0.5 + self._store.random.random()))

    def _answer(self) -> None:
        if self._store.lost_share and self._store.random.random() < self._store.lost_share:
            self._store.counts["lost answer"] += 1
            raise StoreUnavailableError("the answer was lost")
