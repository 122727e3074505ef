"""Calls to the store, counted: joins, stamps, renewals and removals write, and need no read before."""

import asyncio
from collections import Counter
from datetime import timedelta

from certs.ledger.entry import LedgerEntry
from certs.ledger.records.fields import PROXIES
from certs.ledger.records.ledger import RecordedLedger
from certs.ledger.retention import Retention
from meshwright.controller.sharing.store.domains import DOMAINS, IDENTITY
from meshwright.mesh.identity import ProxyName
from meshwright.records.contract import Record, ReplicaId, Revision
from meshwright.records.key import Key, is_within
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.records.recovery.store import HealedRecords
from tests.unit.records.recovery.lossy_memory import NOW, PAUSES

JOINS = 20
DAY = timedelta(days=1)


class CountedRecords(MemoryRecords):
    """A store that counts the calls for the records of proxies."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory, ReplicaId("a"))
        self._calls: Counter[str] = Counter()

    def calls(self) -> dict[str, int]:
        """Return the calls since the last time."""
        calls, self._calls = dict(self._calls), Counter()
        return calls

    async def read(self, key: Key) -> Record | None:
        """Count a read."""
        self._count("read", key)
        return await super().read(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Count a write."""
        self._count("write", key)
        return await super().write(key, content, before)

    async def remove(self, key: Key, before: Revision) -> None:
        """Count a removal."""
        self._count("remove", key)
        await super().remove(key, before)

    def _count(self, call: str, key: Key) -> None:
        if is_within(key, PROXIES):
            self._calls[call] += 1


def certificate(serial: str, name: ProxyName) -> LedgerEntry:
    """Return a certificate of 90 days."""
    return LedgerEntry.issued(serial, name, NOW, NOW + 90 * DAY)


async def test_proxy_costs_one_write_for_each_step_of_its_life() -> None:
    """Each proxy joins, is ready, renews and is forgotten, and the server reads no record for any of it."""
    memory = Memory()
    store = CountedRecords(memory)
    records = HealedRecords(store, ReplicaId("a"), DOMAINS, IDENTITY, lambda: NOW, None, PAUSES)
    await records.begin()
    ledger = RecordedLedger(records, ReplicaId("a"), asyncio.get_running_loop())
    tasks = [asyncio.create_task(ledger.follow(lambda _: None))]
    await asyncio.sleep(0)  # the lists are first
    names = [ProxyName.parse(f"u{number}.cart.shop") for number in range(JOINS)]
    for number, name in enumerate(names):
        await asyncio.to_thread(ledger.record, certificate(f"a{number:x}", name))
    assert store.calls() == {"write": JOINS}
    for number in range(JOINS):
        ledger.claim(f"a{number:x}", NOW)
    await asyncio.to_thread(ledger.admit, names, NOW)
    assert store.calls() == {"write": JOINS}
    for number, name in enumerate(names):
        await asyncio.to_thread(ledger.record, certificate(f"b{number:x}", name))
        await asyncio.to_thread(ledger.revoke, f"b{number:x}", NOW)
    assert store.calls() == {"write": 2 * JOINS}
    retention = Retention(NOW + 500 * DAY, NOW)
    for name in names:
        assert await ledger.forget(name, retention)
    assert store.calls() == {"write": JOINS, "remove": JOINS}
    assert ledger.names() == ()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
