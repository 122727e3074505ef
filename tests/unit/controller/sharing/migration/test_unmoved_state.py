"""Tests that a server makes no CA while an earlier server's state is still to be moved into the store."""

import asyncio

import pytest
from structlog.testing import capture_logs

from certs.authority_records.fields import AUTHORITY, MOVING
from certs.errors import StateError
from meshwright.controller.sharing.migration.unmoved_state import until_moved
from meshwright.records.content import Content, Fields
from meshwright.records.contract import Record, RecordsError, ReplicaId
from meshwright.records.key import Key
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.deadline import until


class _Claim:
    """A claim with state, until a Job has moved the state or an administrator has deleted the claim."""

    def __init__(self, reason: str) -> None:
        self.reason, self.looks = reason, 0

    async def unmoved(self) -> str:
        """Return why the store must not be used yet."""
        self.looks += 1
        return self.reason


def _content(fields: Fields) -> bytes:
    return Content(fields, ReplicaId("a"), 1).encode()


async def _until_asked_again(claim: _Claim) -> None:
    before = claim.looks
    while claim.looks < before + 2:
        await asyncio.sleep(0)


async def test_server_waits_until_the_state_is_in_the_store() -> None:
    """Each reason is logged once, with the next step. The claim itself stays."""
    records, claim = MemoryRecords(Memory(), ReplicaId("a")), _Claim("the claim has state")
    with capture_logs() as logs:
        waiting = asyncio.create_task(until_moved(records, claim.unmoved, 0.0))
        await _until_asked_again(claim)
        assert not waiting.done()
        moving = await records.write(AUTHORITY, _content({MOVING: {"root": "5f2c"}}), None)
        await until(lambda: len(logs) == 2)
        assert not waiting.done()
        await records.write(AUTHORITY, _content({MOVING: {"root": "5f2c"}, "ca": {}}), moving.revision)
        await waiting
    assert {entry["event"] for entry in logs} == {"waiting for the CA in the shared store"}
    claimed, begun = (entry["because"] for entry in logs)
    assert claimed == "the claim has state"
    assert begun.startswith("a mesh is being moved or imported into the store")


async def test_server_goes_on_after_the_claim_was_deleted() -> None:
    """The administrator then wants a new mesh."""
    records, claim = MemoryRecords(Memory(), ReplicaId("a")), _Claim("the claim has state")
    waiting = asyncio.create_task(until_moved(records, claim.unmoved, 0.0))
    await _until_asked_again(claim)
    claim.reason = ""
    await waiting


async def test_store_with_a_ca_is_used_without_a_look_at_claims() -> None:
    """A server that starts again needs no permission to read claims."""
    records, claim = MemoryRecords(Memory(), ReplicaId("a")), _Claim("the claim has state")
    await records.write(AUTHORITY, b"{}", None)
    await until_moved(records, claim.unmoved, 0.0)
    assert claim.looks == 0


class _Away(MemoryRecords):
    async def read(self, key: Key) -> Record | None:
        raise RecordsError(f"cannot read {key}")


async def test_start_fails_with_a_sentence_if_the_store_cannot_be_read() -> None:
    """The server must not take an unread store for an empty one."""
    claim = _Claim("")
    with pytest.raises(StateError, match="the shared store cannot be read: cannot read authority"):
        await until_moved(_Away(Memory(), ReplicaId("a")), claim.unmoved, 0.0)
    assert claim.looks == 0
