"""Servers that share one ledger in one store of records, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from certs.ledger.contract import Judge
from certs.ledger.entry import LedgerEntry
from certs.ledger.records.ledger import RecordedLedger
from meshwright.records.content import Content, Fields
from meshwright.records.contract import Record, ReplicaId
from meshwright.records.key import Key, key_of
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.shared_records import FaultyRecords, LoopThread

U1 = key_of("proxies", "default", "shop", "u1")
"""Key of the proxy `u1.shop.default`."""


class NameRevoked(Exception):
    """Error of the judge of these tests: a certificate of the name was revoked."""


def refuse_revoked(known: tuple[LedgerEntry, ...]) -> None:
    """Refuse another certificate for a name with a revoked one."""
    if any(entry.revoked_at is not None for entry in known):
        raise NameRevoked


NEVER_REVOKED: Judge = refuse_revoked


@dataclass
class Server:
    """One server: its ledger, its client of the store, and the entries that others have changed."""

    ledger: RecordedLedger
    store: FaultyRecords
    news: list[LedgerEntry] = field(default_factory=list)


class Servers:
    """Servers of one store, whose event loop runs in a thread."""

    def __init__(self, thread: LoopThread, memory: Memory | None = None) -> None:
        self.thread = thread
        self.memory = Memory() if memory is None else memory
        self.all: list[Server] = []

    def start(self, *, follows: bool = True) -> Server:
        """Start another server, which follows the store."""
        replica = ReplicaId(f"server-{len(self.all)}")
        store = FaultyRecords(MemoryRecords(self.memory, replica))
        server = Server(RecordedLedger(store, replica, self.thread.loop), store)
        self.all.append(server)
        if follows:
            self.thread.start(server.ledger.follow(server.news.extend))
        return server

    def heal(self, *servers: Server) -> None:
        """Connect servers with the store again."""
        for server in servers:
            self.thread.run(_healed(server))

    def put(self, key: Key, content: bytes) -> None:
        """Write a record as another program would, for example kubectl."""
        self.thread.run(_put(self.memory, key, content))

    def delete(self, key: Key) -> None:
        """Delete a record as another program would."""
        self.thread.run(_deleted(self.memory, key))

    def fields(self, key: Key) -> Fields:
        """Return the fields of a record as they are in the store."""
        return Content.decode(self.memory.records[key].content).fields


@contextmanager
def servers_of_one_store() -> Iterator[Servers]:
    """Provide servers of an empty store."""
    with LoopThread() as thread:
        yield Servers(thread)


async def _healed(server: Server) -> None:
    server.store.heal()


async def _put(memory: Memory, key: Key, content: bytes) -> Record:
    return memory.put(key, content)


async def _deleted(memory: Memory, key: Key) -> None:
    memory.drop(key)
