"""Whole servers of one mesh in this process, which share records in memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from certs.contract import Names, Usage
from certs.custody import AuthorityWithLedger
from certs.keys.pair import Pair, issue_pair
from certs.ledger.entry import LedgerEntry
from meshwright.controller.app import run
from meshwright.controller.process.disk_space import StorePlace
from meshwright.controller.server import BoundAddresses
from meshwright.controller.settings.settings import Settings, load
from meshwright.controller.sharing import shared_store
from meshwright.controller.sharing.shared_store import SharedStore
from meshwright.controller.sharing.store.backends import Backend
from meshwright.mesh.identity import ProxyName
from meshwright.records.contract import Changes, Epoch, Knowledge, Record, ReplicaId, Revision
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from tests.feature.identity.conftest import Server
from tests.tools.shared_records import FaultyRecords, LoopThread

T = TypeVar("T")

ANYWHERE: Final = "127.0.0.1:0"


class _OnOtherLoop:
    """A RecordStore for the event loop of one server; the records are on another event loop."""

    def __init__(self, records: FaultyRecords, loop: asyncio.AbstractEventLoop) -> None:
        self._records, self._loop = records, loop

    async def read(self, key: Key) -> Record | None:
        """Return the present record of a key."""
        return await self._there(self._records.read(key))

    def last_known(self, key: Key) -> Knowledge | None:
        """Return what the records know about a key, without a call."""
        return self._records.last_known(key)

    async def write(self, key: Key, content: bytes, before: Revision | None) -> Record:
        """Write a record."""
        return await self._there(self._records.write(key, content, before))

    async def remove(self, key: Key, before: Revision) -> None:
        """Remove a record."""
        await self._there(self._records.remove(key, before))

    async def follow(self, prefix: Key, receive: Callable[[Changes], None]) -> None:
        """Follow a prefix."""
        await self._there(self._records.follow(prefix, self._here(receive)))

    async def announce(
        self, state: Callable[[], bytes], receive: Callable[[Mapping[ReplicaId, bytes]], None]
    ) -> None:
        """Show this replica to the others."""
        await self._there(self._records.announce(state, self._here(receive)))

    async def lead(self, work: Callable[[Epoch], Coroutine[None, None, None]]) -> None:
        """Lead whenever the store lets this replica lead."""
        here = asyncio.get_running_loop()

        async def term(epoch: Epoch) -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(epoch), here))

        await self._there(self._records.lead(term))

    def _there(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _here(self, receive: Callable[[T], None]) -> Callable[[T], None]:
        here = asyncio.get_running_loop()

        def receive_here(value: T) -> None:
            with contextlib.suppress(RuntimeError):  # that server has ended
                here.call_soon_threadsafe(receive, value)

        return receive_here


@dataclass
class Servers:
    """Servers with their own directories for manifests and state. `memory` has the records of all."""

    folder: Path
    thread: LoopThread
    memory: Memory = field(default_factory=Memory)
    connections: list[FaultyRecords] = field(default_factory=list)
    """The store as each start of a server sees it, in the order of the starts."""
    custody: AuthorityWithLedger | None = None
    _running: dict[str, tuple[asyncio.Event, asyncio.Task[None]]] = field(default_factory=dict)

    def backend(self, settings: Settings, replica: ReplicaId, clock: Callable[[], datetime]) -> Backend:
        """Return the store of a server that starts, in place of `backends.backend`."""
        del settings, clock
        records = FaultyRecords(MemoryRecords(self.memory, replica, renew_every=0.2))
        self.connections.append(records)
        place = StorePlace("the records in memory", "run the test again")
        return Backend(_OnOtherLoop(records, self.thread.loop), contextlib.nullcontext(), place)

    def settings(self, name: str) -> Settings:
        """Return the settings of a server."""
        flags = {"mesh": self.folder / name / "mesh", "state": self.folder / name / "state"}
        addresses = ("ads_address", "http_address", "debug_address", "peer_address")
        short = {"drain_seconds": 0, "shutdown_delay_seconds": 0, "shutdown_spread_seconds": 0}
        store = {"store": "etcd", "etcd_endpoints": ["http://127.0.0.1:1"]}
        secret = {"key_passphrase_file": self.folder / "passphrase"}
        return load({**flags, **dict.fromkeys(addresses, ANYWHERE), **short, **store, **secret})

    async def start(self, name: str, *documents: str) -> Server:
        """Start a server with these manifests, and return once it serves."""
        settings = self.settings(name)
        assert settings.mesh is not None
        settings.mesh.mkdir(parents=True, exist_ok=True)
        started: asyncio.Future[BoundAddresses] = asyncio.get_running_loop().create_future()
        server = Server(settings.mesh, settings.state, None, self.opened.authority)  # type: ignore[arg-type] # set below
        server.write(*documents)
        stop = asyncio.Event()
        task = asyncio.create_task(run(settings, stop, started=started.set_result), name=name)
        self._running[name] = stop, task
        await asyncio.wait((task, started), return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            await task  # raises the reason of the failed start
        server.bound = await started
        return server

    async def stop(self, name: str) -> None:
        """End a server in order."""
        stop, task = self._running.pop(name)
        stop.set()
        await task

    @property
    def opened(self) -> AuthorityWithLedger:
        """Return the CA and the ledger of the mesh."""
        assert self.custody is not None
        return self.custody

    async def certificate(self, name: str) -> Pair:
        """Issue a certificate for a proxy, which is in the shared ledger."""
        now, proxy = datetime.now(UTC), ProxyName.parse(name)
        authority = self.opened.authority
        pair = issue_pair(authority, Usage.PROXY, Names(name), timedelta(hours=1), now)
        serial, end = pair.leaf.serial, pair.leaf.not_after
        entry = LedgerEntry.issued(serial, proxy, now, end, signer=authority.fingerprint)
        await asyncio.to_thread(self.opened.ledger.record, entry)
        return pair


@contextlib.asynccontextmanager
async def servers_in_memory(folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Servers]:
    """Yield servers that are not started yet, and end all of them afterwards."""
    (folder / "passphrase").write_text("the same on all servers\n")
    (folder / "passphrase").chmod(0o600)
    patch.setenv("POD_IP", "127.0.0.1")  # where the servers reach each other
    with LoopThread() as thread:
        servers = Servers(folder, thread)
        patch.setattr(shared_store, "backend", servers.backend)
        own = SharedStore(servers.settings("test"), lambda: datetime.now(UTC))
        try:
            servers.custody = await own.opened(asyncio.Event())
            yield servers
            for name in tuple(servers._running):
                await servers.stop(name)
        finally:
            await asyncio.to_thread(own.close)
