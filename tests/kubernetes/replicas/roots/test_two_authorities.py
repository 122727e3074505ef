"""Two CAs at once: of servers that start at the same moment, in a state directory, and in the store."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest

from certs.authority_records.fields import AUTHORITY
from certs.issuers.ca_folder import fingerprint_in
from meshwright.records.content import Content
from meshwright.records.contract import Record, RecordStore, ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.rows import LONG
from tests.kubernetes.replicas.servers import Replica
from tests.tools.deadline import until
from tests.unit.certs.authority_records.mesh_servers import start

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(600)]

SAID_SECONDS: Final = 30.0


async def test_two_authorities_at_once(surging_mesh: Mesh) -> None:
    """One CA signs for all; another one is named, and never replaced or taken over."""
    mesh = surging_mesh
    store, (owner, latecomer, _) = mesh.engine.records("hand"), mesh.replicas[3:]
    async with mesh.row("two CAs at once") as row:
        # The fixture has started three servers at once in an empty store.
        roots = {str(_opened(replica)["root"]) for replica in mesh.replicas[:3]}
        assert len(roots) == 1, roots
        (root,) = roots
        ours = await _present(store)
        own = await _with_own_authority(owner)
        sentence = await owner.refused()
        assert own in sentence, sentence
        assert root in sentence, sentence
        assert await store.read(AUTHORITY) == ours, "the store has changed"

        foreign = await store.write(AUTHORITY, await _foreign(ours), ours.revision)
        began = time.monotonic()
        await until(lambda: all(map(_has_said, mesh.replicas[:3])), SAID_SECONDS)
        row.note = f"another CA in the store is named after {time.monotonic() - began:.0f} s"
        sentence = await latecomer.refused()
        assert str(AUTHORITY) in sentence, sentence
        for observer in mesh.observers:
            await mesh.moves_on(observer)
        assert await store.read(AUTHORITY) == foreign, "the record was overwritten"
        restored = replace(Content.decode(ours.content), count=Content.decode(foreign.content).count + 1)
        await store.write(AUTHORITY, restored.encode(), foreign.revision)
        began = time.monotonic()
        await latecomer.start()
        assert _opened(latecomer)["root"] == root
        await mesh.settled()
        row.healed = time.monotonic() - began


def _opened(replica: Replica) -> dict[str, object]:
    """Return the line of the log with the fingerprint of the CA that a server uses."""
    (line,) = replica.running.said("shared authority opened")
    return line


async def _with_own_authority(replica: Replica) -> str:
    """Give a server's state directory a CA of its own; return the fingerprint of the CA."""
    server = await asyncio.to_thread(replica.program.serve)
    await asyncio.to_thread(server.stop)
    fingerprint = fingerprint_in(replica.program.state / "ca")
    assert fingerprint, "the state directory has no CA"
    return fingerprint


async def _foreign(ours: Record) -> bytes:
    """Return the authority of another mesh, as a later write than ours."""
    memory = Memory()
    records = MemoryRecords(memory, ReplicaId("other"))
    await asyncio.to_thread(start, records, "other", asyncio.get_running_loop(), datetime.now(UTC))
    count = Content.decode(ours.content).count + 1
    return replace(Content.decode(memory.records[AUTHORITY].content), count=count).encode()


async def _present(store: RecordStore) -> Record:
    record = await store.read(AUTHORITY)
    assert record is not None, "the store has no CA"
    return record


def _has_said(replica: Replica) -> bool:
    """Return whether the log has an error about the authority's record."""
    lines = [line for line in replica.running.log() if line["level"] == "error"]
    return any(f"record {AUTHORITY}" in str(line) for line in lines)
