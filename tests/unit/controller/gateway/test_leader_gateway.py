"""Test that of several servers only the leader writes the gateway's Secret."""

import asyncio
from datetime import datetime

from meshwright.controller.gateway.leader_gateway import LeaderGateway
from meshwright.records.contract import Epoch
from meshwright.replicas.leadership import Leadership
from tests.tools.deadline import until


class _Gateway:
    """A controller that notes whether it works."""

    end: datetime | None = None

    def __init__(self, name: str, working: list[str]) -> None:
        self._name, self._working = name, working

    async def reload(self) -> None:
        """Read the names again, in the term of the record."""
        self._working.append(f"reads in {self.epoch}")

    def lead(self, epoch: Epoch) -> None:
        """Begin a term of the record."""
        self.epoch = epoch

    async def run(self) -> None:
        """Work until cancelled."""
        self._working.clear()
        self._working.append(self._name)
        try:
            await asyncio.Event().wait()
        finally:
            self._working.remove(self._name)


async def test_only_the_leader_controls_the_gateway() -> None:
    """The controller works from the begin of each term to its end."""
    working, leadership = list[str](), Leadership()
    gateway = _Gateway("a", working)
    task = asyncio.create_task(LeaderGateway(gateway, leadership, gateway).run())
    for epoch in (1, 2):
        leadership.begin(Epoch(epoch))
        await until(lambda: working == ["a"])
        leadership.end()
        await until(lambda: working == [])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
