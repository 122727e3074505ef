"""Tests of the leader's pruning of proxies' records: what is looked at, when, and how fast."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from certs.ledger.entry import LedgerEntry
from certs.ledger.records.ledger import RecordedLedger
from certs.ledger.retention import Retention
from meshwright.controller.sharing.record_pruning import HasWorkload, RecordPruning
from meshwright.mesh.identity import ProxyName
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.shared_records import FaultyRecords

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
POD = "kubernetes Pod shop/cart-1 (8a)"


def name(uuid: str) -> ProxyName:
    """Return the name of a proxy."""
    return ProxyName.parse(f"{uuid}.cart.shop")


def certificate(serial: str, uuid: str, day: float = 0.0, *, joined_by: str = "") -> LedgerEntry:
    """Return a certificate of 90 days."""
    at = BEGIN + day * DAY
    return LedgerEntry.issued(serial, name(uuid), at, at + 90 * DAY, joined_by=joined_by)


class Records:
    """The shared ledger on the event loop of the test, and how often a record was to be changed."""

    def __init__(self) -> None:
        self.store = FaultyRecords(MemoryRecords(Memory(), ReplicaId("a")))
        self.ledger = RecordedLedger(self.store, ReplicaId("a"), asyncio.get_running_loop())
        self.calls = 0

    async def record(self, *entries: LedgerEntry) -> None:
        """Record certificates, as joins and revocations do."""
        for entry in entries:
            await asyncio.to_thread(self.ledger.record, replace(entry, revoked_at=None))
            if entry.revoked_at is not None:
                await asyncio.to_thread(self.ledger.revoke, entry.serial, entry.revoked_at)

    def names(self) -> tuple[ProxyName, ...]:
        """Return the names in order."""
        return self.ledger.names()

    def entries_of(self, proxy: ProxyName) -> tuple[LedgerEntry, ...]:
        """Return the certificates of a proxy."""
        return self.ledger.entries_of(proxy)

    def is_forgettable(self, proxy: ProxyName, retention: Retention) -> bool:
        """Ask the ledger."""
        return self.ledger.is_forgettable(proxy, retention)

    async def forget(self, proxy: ProxyName, retention: Retention) -> bool:
        """Let the ledger forget."""
        self.calls += 1
        return await self.ledger.forget(proxy, retention)

    def left(self) -> dict[str, list[str]]:
        """Return the serials of each proxy with a record."""
        return {
            proxy.uuid: [entry.serial for entry in self.ledger.entries_of(proxy)] for proxy in self.names()
        }


class Leader:
    """A leader with records, whose mesh has some proxies."""

    def __init__(self, *, keeps_revoked: bool = False) -> None:
        self.records = Records()
        self.here: set[ProxyName] | None = set()
        self.now = BEGIN
        self.pruning = RecordPruning(
            self.records, self.workloads, lambda: self.now, keeps_revoked=keeps_revoked, pause_seconds=0.0
        )

    def workloads(self) -> HasWorkload | None:
        """Return the function that knows the mesh."""
        here = self.here
        return None if here is None else lambda proxy, _: proxy in here

    async def look(self, day: float) -> int:
        """Look at all records on a day."""
        self.now = BEGIN + day * DAY
        return await self.pruning.look()


@asynccontextmanager
async def leading(*entries: LedgerEntry, keeps_revoked: bool = False) -> AsyncIterator[Leader]:
    """Provide a leader whose ledger has these certificates, and follows the store."""
    leader = Leader(keeps_revoked=keeps_revoked)
    following = asyncio.create_task(leader.records.ledger.follow(lambda _: None))
    await leader.records.record(*entries)
    yield leader
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_leader_forgets_what_has_ended() -> None:
    """A gone proxy's record vanishes, a living one's keeps the certificate in force, and one line says it."""
    async with leading(
        certificate("aa", "u1"), certificate("bb", "u2"), certificate("cc", "u2", 60)
    ) as leader:
        leader.here = {name("u2")}
        assert await leader.look(90) == 0
        with capture_logs() as logs:
            assert await leader.look(92) == 2
        assert leader.records.left() == {"u2": ["cc"]}
        assert logs == [{"event": "old proxy certificates are forgotten", "log_level": "info", "proxies": 2}]
        assert await leader.look(93) == 0
        assert leader.records.calls == 2
        assert leader.records.ledger.first() == "aa"  # the first serial proves to which mesh a CA belongs


async def test_record_of_a_pod_vanishes_a_day_after_the_pod() -> None:
    """The Pod must have been gone for the whole day: one that was seen again has another day."""
    async with leading(*(certificate(uuid, uuid, joined_by=POD) for uuid in ("a1", "a2", "a3"))) as leader:
        leader.here = {name("a3")}
        assert await leader.look(10) == 0
        leader.here = {name("a2"), name("a3")}
        assert await leader.look(10.5) == 0
        leader.here = {name("a3")}
        assert await leader.look(11.1) == 1
        assert leader.records.left() == {"a2": ["a2"], "a3": ["a3"]}
        assert await leader.look(12.2) == 1
        assert leader.records.left() == {"a3": ["a3"]}


async def test_nothing_is_forgotten_while_the_mesh_is_not_known() -> None:
    """A source that cannot be read makes no Pod count as gone."""
    async with leading(*(certificate(uuid, uuid, joined_by=POD) for uuid in ("a1", "a2"))) as leader:
        leader.here = None
        assert [await leader.look(day) for day in (10, 12, 20)] == [0, 0, 0]
        leader.here = {name("a1")}
        assert [await leader.look(day) for day in (20, 20.9, 21.1)] == [0, 0, 1]
        assert leader.records.left() == {"a1": ["a1"]}


async def test_store_that_is_away_ends_the_look() -> None:
    """There is one attempt and one line for each look; the next look goes on."""
    async with leading(*(certificate(f"{number:x}", f"u{number}") for number in range(5))) as leader:
        leader.records.store.is_away = True
        with capture_logs() as logs:
            assert await leader.look(100) == 0
        assert (leader.records.calls, [log["event"] for log in logs]) == (
            1,
            ["old proxy certificates are not forgotten now"],
        )
        leader.records.store.is_away = False
        assert await leader.look(101) == 5
        assert leader.records.left() == {}


@pytest.mark.parametrize("keeps_revoked", [False, True])
async def test_mesh_with_installed_proofs_keeps_revocations(keeps_revoked: bool) -> None:
    """A proof of an installed kind may be good for ever."""
    revoked = replace(certificate("aa", "u1"), revoked_at=BEGIN)
    async with leading(revoked, keeps_revoked=keeps_revoked) as leader:
        assert await leader.look(300) == 0
        assert await leader.look(2000) == (0 if keeps_revoked else 1)
