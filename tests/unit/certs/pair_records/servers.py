"""Servers that share service certificates in one store of records, for tests."""

from dataclasses import dataclass, field
from typing import Final

from certs.pair_records.store import RecordedPairs
from certs.state.sealing import RecordSeal
from meshwright.records.content import Content, Fields
from meshwright.records.contract import ReplicaId
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.shared_records import FaultyRecords, LoopThread

DATA_KEY: Final = bytes(range(32))
"""The data key of these servers."""


@dataclass
class PairServers:
    """Factory of the stores of several servers."""

    thread: LoopThread
    memory: Memory = field(default_factory=Memory)
    clients: list[FaultyRecords] = field(default_factory=list)

    def open(self) -> RecordedPairs:
        """Start another server, which follows the records; its client is the last one."""
        pairs = self.start()
        self.thread.start(pairs.follow())
        return pairs

    def start(self) -> RecordedPairs:
        """Start another server, which has not heard of the records yet."""
        replica = ReplicaId(f"server-{len(self.clients)}")
        client = FaultyRecords(MemoryRecords(self.memory, replica))
        self.clients.append(client)
        return RecordedPairs(client, replica, self.thread.loop, RecordSeal(DATA_KEY))

    def content(self, key: Key) -> Content:
        """Return the content of a record as it is in the store."""
        return Content.decode(self.memory.records[key].content)

    def put(self, key: Key, fields: Fields) -> None:
        """Write fields as another program would, for example kubectl."""
        self.put_content(key, Content(fields, ReplicaId("other"), 100).encode())

    def put_content(self, key: Key, content: bytes) -> None:
        """Write a content as another program would."""

        async def work() -> None:
            self.memory.put(key, content)

        self.thread.run(work())

    def delete(self, key: Key) -> None:
        """Delete a record as another program would."""

        async def work() -> None:
            self.memory.drop(key)

        self.thread.run(work())
