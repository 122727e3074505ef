"""Tests of a free leadership with servers of two versions, in simulated time."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import pytest

from benchmarks.simulation.clock import run
from meshwright.controller.sharing.store.server_loop import ServerLoop
from meshwright.controller.sharing.store.server_presence import ServerPresence
from meshwright.records.contract import ReplicaId
from meshwright.records.memory import Memory, MemoryRecords

NOW: Final = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
RENEWAL: Final = 1.0
"""Seconds between two announcements, and between two tries to lead."""


@dataclass
class Server:
    """The presence of one server, and its tasks."""

    presence: ServerPresence
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def begin(self, *works: Callable[[], Coroutine[None, None, None]]) -> None:
        """Start tasks of the server."""
        self.tasks += [asyncio.create_task(work()) for work in works]

    async def end(self) -> None:
        """End all tasks of the server."""
        for task in self.tasks:
            task.cancel()
        for task in self.tasks:
            with suppress(asyncio.CancelledError):
                await task


def server(memory: Memory, name: str, version: str, *, is_ready: bool = True) -> Server:
    """Return an announced server, which does not lead yet."""
    records = MemoryRecords(memory, ReplicaId(name), RENEWAL)
    presence = ServerPresence(records, ReplicaId(name), lambda: NOW, ServerLoop())
    presence.membership.set_facts(version=version, is_ready=is_ready)
    made = Server(presence)
    made.begin(presence.announce)
    return made


def leader(servers: list[Server]) -> str:
    """Return the name of the leader, empty without one."""
    return ",".join(
        server.presence.membership.replica for server in servers if server.presence.leadership.epoch
    )


async def _leaders(version: str, *, is_ready: bool, leads: bool) -> list[str]:
    """Return who leads at first, and 2.5 s and 20 s after the leader's end.

    The leader and the next candidate have version 0.9.2. A third server comes with `version`, and is a
    candidate if `leads`.
    """
    memory = Memory()
    former, other = (server(memory, name, "0.9.2") for name in ("former", "other"))
    for candidate in (former, other):
        candidate.begin(candidate.presence.lead)
        await asyncio.sleep(RENEWAL)
    newer = server(memory, "newer", version, is_ready=is_ready)
    if leads:
        newer.begin(newer.presence.lead)
    servers = [former, other, newer]
    await asyncio.sleep(60)
    result = [leader(servers)]
    await former.end()
    for seconds in (2.5, 17.5):
        await asyncio.sleep(seconds)
        result.append(leader(servers))
    for left in (other, newer):
        await left.end()
    return result


@pytest.mark.parametrize("version", ["0.9.10", "0.10.0", "1", "0.9.3.dev1"])
def test_newer_server_leads_before_an_older_one(version: str) -> None:
    """The older server has the first place in the queue, and gives it away."""
    assert run(_leaders(version, is_ready=True, leads=True)) == ["former", "newer", "newer"]


@pytest.mark.parametrize(
    ("version", "is_ready"), [("0.9.2", True), ("0.9.1", True), ("", True), ("1.0.0", False)]
)
def test_server_waits_only_for_a_newer_one_that_is_ready(version: str, is_ready: bool) -> None:
    """The next in the queue leads, if the third server is of no newer version, or not ready."""
    assert run(_leaders(version, is_ready=is_ready, leads=True)) == ["former", "other", "other"]


def test_older_server_leads_after_five_seconds_if_no_newer_one_does() -> None:
    """A newer server may be unable to lead, for example because a permission is missing."""
    assert run(_leaders("1.0.0", is_ready=True, leads=False)) == ["former", "", "other"]
