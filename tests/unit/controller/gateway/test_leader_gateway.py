"""Test that of several servers only the leader writes the gateway's Secret."""

import asyncio
from datetime import datetime

from meshwright.controller.gateway.leader_gateway import LeaderGateway
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords
from tests.tools.deadline import until


class _Gateway:
    """A controller that notes whether it works."""

    end: datetime | None = None

    def __init__(self, name: str, working: list[str]) -> None:
        self._name, self._working = name, working

    async def run(self) -> None:
        """Work until cancelled."""
        self._working.append(self._name)
        try:
            await asyncio.Event().wait()
        finally:
            self._working.remove(self._name)


async def test_only_the_leader_controls_the_gateway() -> None:
    """When the leader ends, another server goes on."""
    memory, working = Memory(), list[str]()
    tasks = {
        name: asyncio.create_task(
            LeaderGateway(_Gateway(name, working), MemoryRecords(memory, ReplicaId(name))).run()
        )
        for name in ("a", "b", "c")
    }
    for _ in range(3):
        await until(lambda: working)
        (leader,) = working
        task = tasks.pop(leader)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert working == []
