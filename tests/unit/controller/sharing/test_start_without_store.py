"""Tests of a start while the shared store is away, and of a stop during a start."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from certs.ledger.records.header import HEADER
from meshwright.controller.process.disk_space import StorePlace
from meshwright.controller.settings.settings import Settings, load
from meshwright.controller.sharing import shared_store
from meshwright.controller.sharing.shared_store import SharedStore
from meshwright.controller.sharing.store.backends import Backend
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.records.recovery.store import HealedRecords
from tests.tools.deadline import until
from tests.tools.shared_records import FaultyRecords
from tests.unit.records.recovery.lossy_memory import NOW, PAUSES
from tests.unit.transfer.meshes import DOMAIN
from tools.ports import free_port


class _Records(FaultyRecords):
    """A store that shows no server to the others while it is away, or for as long as `hides` is set."""

    hides = announces = False

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[Any, bytes]], None]
    ) -> None:
        """Show this replica once the store is here."""
        self.announces = True
        while self.is_away or self.hides:
            await asyncio.sleep(0.001)
        await super().announce(state, receive)


class Servers:
    """Servers on one store, one after the other, with one state directory."""

    def __init__(self, state: Path) -> None:
        address = f"127.0.0.1:{free_port('127.0.0.1')}"
        flags = {"state": state, "trust_domain": DOMAIN, "kubernetes": True, "store": "kubernetes"}
        self.settings = load({**flags, "http_address": address})
        self.memory, self.stop = Memory(), asyncio.Event()
        self.is_away = self.hides = False
        self.records: list[_Records] = []

    def backend(self, settings: Settings, replica: ReplicaId, clock: Callable[[], object]) -> Backend:
        """Return the store, as one server sees it."""
        del settings, clock
        records = _Records(MemoryRecords(self.memory, replica))
        records.is_away, records.hides = self.is_away, self.hides
        self.records.append(records)
        return Backend(records, contextlib.nullcontext(), StorePlace("a store of the test", "wait"))

    @contextlib.asynccontextmanager
    async def started(self) -> AsyncIterator[tuple[SharedStore, str | None]]:
        """Yield the store of a server, and the CA that it has opened; None if it was stopped."""
        shared = SharedStore(self.settings, lambda: NOW)
        try:
            opened = await shared.opened(self.stop)
            yield shared, None if opened is None else opened.authority.fingerprint
        finally:
            await asyncio.to_thread(shared.close)


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Servers:
    """Return no servers yet."""
    result = Servers(tmp_path / "state")
    monkeypatch.setattr(shared_store, "backend", result.backend)
    monkeypatch.setattr(shared_store, "HealedRecords", partial(HealedRecords, pauses=PAUSES))
    return result


async def test_restart_without_the_store_opens_the_followed_ca(servers: Servers) -> None:
    """No other server can see this one then, so the start does not wait for it; later they do."""
    async with servers.started() as (shared, made):
        assert made is not None
        await until(lambda: shared.membership.own.records.get(HEADER))
    servers.is_away = True
    async with asyncio.timeout(20), servers.started() as (shared, opened):
        assert opened == made
        servers.records[-1].is_away = False
        await until(lambda: list(servers.memory.states) == [shared.replica])


async def test_stop_ends_a_start_that_no_other_server_can_see(servers: Servers) -> None:
    """Otherwise the start would go on for a minute, and a kubelet would kill the server."""
    servers.hides = True

    async def stopped() -> None:
        await until(lambda: servers.records and servers.records[0].announces)
        servers.stop.set()

    stopping = asyncio.create_task(stopped())
    async with asyncio.timeout(shared_store.LIST_SECONDS / 2), servers.started() as (_, opened):
        assert opened is None
    await stopping
