"""Cost of the records of proxies at each server: memory, and CPU time to hear of one."""

import asyncio
import gc
import os
import time
from dataclasses import dataclass
from typing import Final

from benchmarks.processes.usage import memory
from benchmarks.simulation.proxies import Proxy
from benchmarks.simulation.server import START, SimulatedLedger
from certs.ledger.entry import Stamp, StampDetail
from certs.ledger.records.fields import key_of_proxy, with_entries
from meshwright.records.content import Content
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords

RECORDS: Final = 10_000
_HERE: Final = ReplicaId("here")


@dataclass(frozen=True, slots=True)
class RecordCost:
    """Cost of one proxy's record at each server: bytes of memory, and microseconds of CPU time to hear it."""

    bytes: float
    cpu_us: float


async def record_cost(records: int = RECORDS) -> RecordCost:
    """Let one server list records, and return the cost of each; call this before the heap has grown."""
    store = Memory()
    for number in range(records):
        proxy = Proxy(number, number // 3)
        stamps = {
            Stamp.CLAIMED: StampDetail(START, "ipv4:10.1.2.3:40000"),
            Stamp.ADMITTED: StampDetail(START),
        }
        fields = with_entries(None, (proxy.certificate(START).stamped(stamps),)) or {}
        store.put(key_of_proxy(proxy.name), Content(fields, _HERE, 2).encode())
    ledger = SimulatedLedger(MemoryRecords(store, _HERE), _HERE, asyncio.get_running_loop())
    gc.collect()
    before, began = memory(os.getpid()).resident, time.process_time()
    following = asyncio.create_task(ledger.follow(lambda _: None))
    await asyncio.sleep(0.1)
    cpu = time.process_time() - began
    gc.collect()
    added = memory(os.getpid()).resident - before
    following.cancel()
    return RecordCost(max(0.0, added) * 2**20 / records, 1e6 * cpu / records)
