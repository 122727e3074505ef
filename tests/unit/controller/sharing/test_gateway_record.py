"""Tests of the names of gateway Secrets in a shared record: each leader has those of its predecessors."""

import asyncio
from typing import Final

import pytest
from structlog.testing import capture_logs

from meshwright.controller.sharing.gateway_record import RecordedGatewaySecrets
from meshwright.controller.sharing.store.domains import DOMAINS
from meshwright.mesh.names import Namespace, SecretName
from meshwright.records.content import Content
from meshwright.records.contract import Epoch, ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.transfer.store_state import GATEWAY
from tests.tools.deadline import until
from tests.tools.shared_records import FaultyRecords, LoopThread, away
from tests.unit.records.recovery.lossy_memory import LossyMemory, Replica, replica_of, running

ONE, TWO = (SecretName(Namespace("mesh"), name) for name in ("one", "two"))
NOBODY: Final[frozenset[SecretName]] = frozenset()


def test_next_leader_has_the_names_and_the_former_one_changes_nothing() -> None:
    """The Secret that was renamed while another server led is known, so it is deleted under its old name."""
    memory = Memory()
    with LoopThread() as thread:
        former, leader = (
            RecordedGatewaySecrets(MemoryRecords(memory, ReplicaId(name)), ReplicaId(name), thread.loop)
            for name in ("a", "b")
        )
        assert (former.load(), leader.load()) == (NOBODY, NOBODY)
        former.lead(Epoch(3))
        former.keep(frozenset({TWO, ONE}))
        leader.lead(Epoch(4))
        assert leader.load() == {ONE, TWO}
        with capture_logs() as logs:
            former.keep(frozenset({ONE}))
        assert [log["event"] for log in logs] == ["the list of gateway Secrets cannot be saved"]
        assert leader.load() == {ONE, TWO}
        leader.keep(frozenset({ONE}))
        former.lead(Epoch(1))  # the store counts anew, for example after its Lease was deleted
        assert former.load() == {ONE}
        former.keep(NOBODY)
        content = Content.decode(memory.records[GATEWAY].content)
        assert (content.fields, content.epoch) == ({"secrets": []}, 5)


@pytest.mark.parametrize("secrets", [5, [["mesh"]], None])
def test_unreadable_names_are_logged(secrets: object) -> None:
    """Secrets of former gateways then stay, as with a damaged file."""
    memory = Memory()
    memory.put(GATEWAY, Content({"secrets": secrets}, ReplicaId("x")).encode())
    with LoopThread() as thread, capture_logs() as logs:
        client = FaultyRecords(MemoryRecords(memory, ReplicaId("a")))
        names = RecordedGatewaySecrets(client, ReplicaId("a"), thread.loop)
        names.lead(Epoch(1))
        assert names.load() == NOBODY
        with away(client):
            names.lead(Epoch(2))
            assert names.load() == NOBODY
            names.keep(frozenset({ONE}))
    assert [log["log_level"] for log in logs] == ["error"] * 4


async def leader_of(replica: Replica, epoch: int) -> RecordedGatewaySecrets:
    """Return the names at a server that leads and follows them; the test's loop is the one of the store."""
    names = RecordedGatewaySecrets(replica.records, ReplicaId("a"), asyncio.get_running_loop())
    await asyncio.to_thread(names.lead, Epoch(epoch))
    return names


def stored(memory: LossyMemory) -> object:
    """Return the names in the store, or None without the record."""
    record = memory.records.get(GATEWAY)
    return None if record is None else Content.decode(record.content).fields["secrets"]


async def test_lost_names_are_written_again() -> None:
    """They come back after the record was deleted by hand, and after an older snapshot was restored."""
    memory = LossyMemory()
    replicas = [replica_of(memory, name, DOMAINS) for name in ("a", "b")]
    async with running(*replicas, prefixes=(GATEWAY,)):
        leader = await leader_of(replicas[0], 1)
        await asyncio.to_thread(leader.keep, frozenset({ONE}))
        older = dict(memory.records)
        await asyncio.to_thread(leader.keep, frozenset({ONE, TWO}))
        both = [["mesh", "one"], ["mesh", "two"]]
        await until(lambda: all(GATEWAY in replica.heard for replica in replicas))
        memory.drop(GATEWAY)
        await until(lambda: stored(memory) == both)
        memory.restore(older)
        await until(lambda: stored(memory) == both)
        await asyncio.to_thread(leader.keep, frozenset({TWO}))  # a removal by the leader is no loss
        await until(lambda: all(replica.heard[GATEWAY] == memory.records[GATEWAY] for replica in replicas))
        await until(lambda: not any(replica.records.remarks() for replica in replicas))
        assert stored(memory) == [["mesh", "two"]]


async def test_new_leader_knows_names_that_the_store_has_just_lost() -> None:
    """The leader would otherwise leave the Secrets of former gateways for ever, when it adds its own."""
    memory = LossyMemory()
    replica = replica_of(memory, "a", DOMAINS)
    async with running(replica, prefixes=(GATEWAY,)):
        leader = await leader_of(replica, 1)
        following = asyncio.create_task(leader.follow())
        await asyncio.to_thread(leader.keep, frozenset({ONE}))
        await until(lambda: GATEWAY in replica.heard)
        replica.connection.is_cut = True
        memory.drop(GATEWAY)
        await asyncio.to_thread(leader.lead, Epoch(2))
        assert await asyncio.to_thread(leader.load) == {ONE}
        await asyncio.to_thread(leader.keep, frozenset({ONE, TWO}))
        replica.connection.heal()
        await until(lambda: stored(memory) == [["mesh", "one"], ["mesh", "two"]])
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
