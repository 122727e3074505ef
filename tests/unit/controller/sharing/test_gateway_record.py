"""Tests of the names of gateway Secrets in a shared record: each leader has those of its predecessors."""

from typing import Final

import pytest
from structlog.testing import capture_logs

from meshwright.controller.sharing.gateway_record import RecordedGatewaySecrets
from meshwright.mesh.names import Namespace, SecretName
from meshwright.records.content import Content
from meshwright.records.contract import Epoch, ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from meshwright.transfer.store_state import GATEWAY
from tests.tools.shared_records import FaultyRecords, LoopThread, away

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
