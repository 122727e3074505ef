"""Tests of the presence of a replica over a store in memory, which deletes the key during a write."""

import asyncio
from typing import cast

from meshwright.etcd.client import Client
from meshwright.etcd.lease import Terms
from meshwright.etcd.values import KeyValue, LeaseId, Page
from meshwright.etcd.watch import Events
from meshwright.records.contract import ReplicaId
from meshwright.records.etcd.layout import Layout
from meshwright.records.etcd.presence import Presence
from tests.unit.etcd.test_feed import Script, at

LAYOUT, ME = Layout("mesh.example"), ReplicaId("a")


class Store(Script):
    """A store whose watch tells of the deletion of the first written key before the write is answered."""

    def __init__(self) -> None:
        super().__init__([[Page((), at(2), more=False)]], [[at(2)]])
        self.written: list[bytes] = []
        self.is_written_again = asyncio.Event()
        self._events = asyncio.Queue[Events]()
        self._is_heard = asyncio.Event()

    async def grant(self, seconds: int) -> LeaseId:
        """Return a lease."""
        return LeaseId(1)

    async def renew(self, lease: LeaseId) -> bool:
        """Renew the lease."""
        return True

    async def put(self, key: bytes, value: bytes, lease: LeaseId) -> None:
        """Write a key; somebody deletes it at once."""
        self.written.append(value)
        if len(self.written) > 1:
            self.is_written_again.set()
            return
        self._events.put_nowait(Events(3, (KeyValue(key, value, 3, 3),)))
        self._events.put_nowait(Events(4, (key,)))
        await self._is_heard.wait()

    async def events(self) -> Events:
        """Return the next events; a question after the deletion shows that the deletion was heard."""
        if self.written and self._events.empty():
            self._is_heard.set()
        return await self._events.get()


async def test_key_deleted_during_its_write_is_written_again() -> None:
    """The answer to the write comes last, and must not hide that the key is gone."""
    store = Store()
    presence = Presence(cast("Client", store), LAYOUT, ME, Terms(lasts=15, every=0.0, patience=10.0))
    showing = asyncio.create_task(presence.run(lambda: b"state", lambda _: None))
    async with asyncio.timeout(5):
        await store.is_written_again.wait()
    showing.cancel()
    await asyncio.wait([showing])
    assert store.written[:2] == [b"state", b"state"]
