"""Servers that share one state of the authority in one store of records, for tests."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from certs.authority_records.fields import AUTHORITY
from certs.authority_records.store import RecordedAuthority
from certs.state.record_proofs import with_proof
from certs.state.sealing import RecordSeal
from meshwright.records.content import Content, Fields
from meshwright.records.contract import Record, ReplicaId, Revision
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.shared_records import FaultyRecords, LoopThread
from tests.unit.certs.authority_files.steps import Died

DATA_KEY: Final = bytes(range(32))
"""The data key in tests that do not open it from the store."""


def _live() -> None:
    """Let the process live on."""


class DyingRecords(FaultyRecords):
    """Client of a store in a process that may die before or after each write: `on_write` raises then."""

    on_write: Callable[[], None] = staticmethod(_live)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Write a record, unless the process dies."""
        self.on_write()
        record = await super().write(key, content, before)
        self.on_write()
        return record


@dataclass
class AuthorityServers:
    """Factory of the stores of several servers; all have the data key DATA_KEY."""

    thread: LoopThread
    memory: Memory = field(default_factory=Memory)
    clients: list[DyingRecords] = field(default_factory=list)
    on_write: Callable[[], None] = _live

    def open(self) -> RecordedAuthority:
        """Start another server, and return its store of the authority; its client is the last one."""
        replica = ReplicaId(f"server-{len(self.clients)}")
        client = DyingRecords(MemoryRecords(self.memory, replica))
        client.on_write = self._write
        self.clients.append(client)
        return RecordedAuthority(client, replica, self.thread.loop, RecordSeal(DATA_KEY))

    def _write(self) -> None:
        self.on_write()

    @contextmanager
    def dying(self, number: int) -> Iterator[None]:
        """Let a write fail before or after the fact."""
        left = iter([False] * number)

        def check() -> None:
            if next(left, True):
                raise Died

        self.on_write = check
        with suppress(Died):
            yield
        self.on_write = _live

    def damage(self, name: str) -> str:
        """Overwrite a field with a text."""
        self.put(AUTHORITY, {**self.fields(AUTHORITY), name: "damaged"})
        return f"field {name} of the record authority"

    def fields(self, key: Key) -> Fields:
        """Return the fields of a record as they are in the store."""
        return Content.decode(self.memory.records[key].content).fields

    def put(self, key: Key, fields: Fields, *, proven: bool = True) -> None:
        """Write fields as a server with the data key would, or else another program, for example kubectl."""
        if proven and key == AUTHORITY:
            fields = with_proof(fields, AUTHORITY, RecordSeal(DATA_KEY))
        self.put_content(key, Content(fields, ReplicaId("other"), 100).encode())

    def put_content(self, key: Key, content: bytes) -> None:
        """Write a content as another program would."""

        async def work() -> None:
            self.memory.put(key, content)

        self.run(work())

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine on the event loop of the store."""
        self.thread.run(work)
