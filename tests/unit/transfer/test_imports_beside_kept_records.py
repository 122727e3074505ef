"""Tests of an import into a store that was emptied, while a server has kept records of the same mesh."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from certs.shared_records.custody import AUTHORITY, SEAL
from meshwright.controller.sharing.store.domains import DOMAINS, IDENTITY
from meshwright.records.content import Content
from meshwright.records.contract import Changes, Epoch, Record, ReplicaId
from meshwright.records.key import Key
from meshwright.records.memory import MemoryRecords
from meshwright.records.recovery.domain import domain_of
from meshwright.records.recovery.store import HealedRecords
from meshwright.records.update import fenced
from tests.tools.deadline import until
from tests.tools.shared_records import LoopThread
from tests.unit.records.recovery.lossy_memory import PAUSES
from tests.unit.transfer.meshes import HOUR, NOW, Store, rotating_mesh, small_mesh

SERVER = ReplicaId("server")


class _Kept:
    """The records of the emptied store, which a server has followed."""

    def __init__(self, records: Mapping[Key, Record]) -> None:
        self._records = dict(records)

    def load(self) -> Iterable[Record]:
        """Return the records."""
        return self._records.values()

    def keep(self, changes: Mapping[Key, Record | None]) -> None:
        """Forget changes."""


async def _followed(store: Store, kept: _Kept) -> None:
    """Start a server with kept records, and wait until it has compared them with the store."""
    healed = HealedRecords(
        MemoryRecords(store.memory, SERVER), SERVER, DOMAINS, IDENTITY, lambda: NOW, kept, PAUSES
    )
    await healed.begin()
    heard = set[Key]()
    works = [healed.follow(key, partial(_note, heard, key)) for key in (SEAL, AUTHORITY)]
    tasks = [asyncio.ensure_future(work) for work in (*works, healed.heal())]
    await until(lambda: heard == {SEAL, AUTHORITY})
    for _ in range(50):  # turns of the loop, in which a lost record would be read and written
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _note(heard: set[Key], key: Key, changes: Changes) -> None:
    del changes
    heard.add(key)


def test_server_does_not_write_the_former_state_over_an_import(store: Store, thread: LoopThread) -> None:
    """Otherwise a former CA or passphrase came back, with the first server of before the import."""
    store.client().write(rotating_mesh(), NOW - HOUR)
    data_key = store.read().data_key
    for term in range(1, 4):
        for key in (SEAL, AUTHORITY):
            thread.run(fenced(MemoryRecords(store.memory, SERVER), key, SERVER, Epoch(term)))
    kept = _Kept(store.memory.records)
    emptied = Store(thread)
    emptied.write(replace(small_mesh(), data_key=data_key))
    before = emptied.contents()
    thread.run(_followed(emptied, kept))
    assert emptied.contents() == before


def test_nothing_that_an_import_has_written_may_be_lost(store: Store) -> None:
    """For example, a join token with one use could be used twice after the store has lost the use."""
    store.write(small_mesh())
    vanishing = [
        key
        for key, record in store.memory.records.items()
        if (domain := domain_of(DOMAINS, key)) is not None
        and domain.mend(key, Content.decode(record.content), None, NOW) is None
    ]
    assert vanishing == []
