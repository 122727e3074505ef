"""The leader is killed before and after each write of a root rotation."""

import asyncio
import contextlib
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from certs.authority_records.fields import AUTHORITY
from meshwright.records.content import Content
from meshwright.records.contract import Changes
from tests.kubernetes.replicas.engines import Engine
from tests.kubernetes.replicas.meshes import Mesh, running_mesh
from tests.kubernetes.replicas.roots.counted_writes import CountedEngine, Moment, counted
from tests.kubernetes.replicas.roots.envoy_agents import with_agent
from tests.kubernetes.replicas.rows import LONG, Table
from tests.kubernetes.replicas.servers import Replica, alive, until_led
from tests.tools import envoy as envoys
from tests.tools.deadline import until
from tests.tools.forked_cli import Typed

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(5400)]

STAGES: Final = ("trusting", "replacing", "retiring", "")
"""The stages of a rotation in order; the last one is the end."""

ROTATED_SECONDS: Final = 180.0

MOST_WRITES: Final = int(os.environ.get("MESHWRIGHT_ROTATION_WRITES", "1000"))
"""Largest number of writes at which the leader is killed."""


@dataclass
class Steps:
    """The steps of root rotations in the store, as they are written: each stage with the CA that signs."""

    taken: list[tuple[str, str]] = field(default_factory=list)

    def hear(self, changes: Changes) -> None:
        """Take the authority's record, unless stage and CA are the same as before."""
        for record in changes.records:
            fields: Any = Content.decode(record.content).fields
            stage = (fields.get("rotation") or {}).get("stage", "")
            signer = hashlib.sha256(json.dumps(fields["ca"]["certificate"]).encode()).hexdigest()[:8]
            if (stage, signer) != (self.taken[-1] if self.taken else None):
                self.taken.append((stage, signer))

    @property
    def stage(self) -> str:
        """Return the present stage, empty without a rotation."""
        return self.taken[-1][0] if self.taken else ""


@asynccontextmanager
async def followed(engine: Engine) -> AsyncIterator[Steps]:
    """Follow the authority within the block."""
    steps = Steps()
    task = asyncio.create_task(engine.records("steps").follow(AUTHORITY, steps.hear), name="steps")
    try:
        await until(lambda: bool(steps.taken))
        yield steps
        assert not task.done(), task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_leader_is_killed_at_each_write_of_a_root_rotation(
    engine: Engine, typed: Typed, tmp_path: Path, table: Table
) -> None:
    """Every rotation ends, no step is lost or taken twice, and no request fails."""
    async with (
        counted(engine) as relayed,
        running_mesh(
            relayed, lambda _: typed, tmp_path, str(envoys.program()), table, observers=0, equip=with_agent
        ) as mesh,
        followed(engine) as steps,
    ):
        leader = await until_led(mesh.replicas)
        writes = relayed.writes[leader.name]
        writes.begin()
        async with mesh.row("a root rotation", changes=True) as row:
            row.healed = await rotated(mesh, leader, steps)
            row.note = f"{len(writes.seen)} writes of the leader: {', '.join(writes.seen)}"
        for number in range(1, min(len(writes.seen), MOST_WRITES) + 1):
            for moment in Moment:
                await _killed_at(mesh, relayed, steps, number, moment)


async def _killed_at(mesh: Mesh, relayed: CountedEngine, steps: Steps, number: int, moment: Moment) -> None:
    """Rotate the root; kill the leader at a write, and start it again after the rotation."""
    leader = await until_led(mesh.replicas)
    writes = relayed.writes[leader.name]
    async with mesh.row(f"the leader is killed {moment} write {number} of a rotation", changes=True) as row:
        writes.arm(number, moment, leader.running.process.kill)
        row.healed = await rotated(mesh, leader, steps)
        seen, was_killed = writes.seen, writes.has_killed
        writes.begin()  # before the start, whose writes the relay would refuse
        if was_killed:
            row.note = f"the write of {seen[number - 1]}"
            await leader.start()
        else:
            row.note = f"the rotation had {len(seen)} writes of the leader"
        await mesh.settled()


async def rotated(mesh: Mesh, leader: Replica, steps: Steps) -> float:
    """Begin a rotation at the leader, at another server if that is killed; return the seconds until the end.

    Require each stage once, in order, and another CA that signs from one of them on.
    """
    before, began = steps.taken[-1][1], time.monotonic()
    assert steps.stage == "", "a rotation is in progress"
    first = len(steps.taken)
    if not await _begun(leader):
        # The server was killed during the command. Like an operator, look whether the rotation has begun.
        await asyncio.to_thread(leader.running.process.wait)
        if len(steps.taken) == first:
            assert await _begun(alive(mesh.replicas)[0])
    await until(
        lambda: len(steps.taken) > first and steps.stage == "",
        ROTATED_SECONDS,
        lambda: str(steps.taken[first:]),
    )
    seconds = time.monotonic() - began
    taken = steps.taken[first:]
    stages = [stage for stage, _ in taken]
    assert [stage for number, stage in enumerate(stages) if stage not in stages[:number]] == list(STAGES), (
        taken
    )
    signers = [signer for _, signer in taken]
    changes = sum(one != other for one, other in zip([before, *signers], signers, strict=False))
    assert (changes, signers[-1] != before) == (1, True), taken
    assert len(stages) <= len(STAGES) + 1, taken
    return seconds


async def _begun(replica: Replica) -> bool:
    """Begin a rotation at a server; return whether the server has answered that it has begun."""
    command = ("certs", "rotate-root", "--json", "--state", str(replica.program.state))
    status, _, _ = await asyncio.to_thread(replica.program.run, *command)
    return status in (0, 1)
