"""Servers that are replaced in order: one by one, and all new ones before the old ones end."""

import asyncio
import time
from typing import Final

import pytest

from tests.kubernetes.replicas.meshes import Mesh
from tests.kubernetes.replicas.rows import LONG

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(600)]

MOVES_A_PROXY: Final = 1.2


async def test_servers_are_restarted_one_by_one(mesh: Mesh) -> None:
    """Each server ends in order, and starts again before the next one ends."""
    async with mesh.row("restarted one by one") as row:
        before, began = mesh.moves(), time.monotonic()
        for replica in mesh.replicas[:3]:
            await replica.stop()
            await replica.start()
            await mesh.settled()
        row.healed = time.monotonic() - began
        row.note = f"{(mesh.moves() - before) / len(mesh.observers):.1f} moves an observer"


async def test_new_servers_start_before_the_old_ones_end(surging_mesh: Mesh) -> None:
    """The old servers end at the same time, after the new ones are ready, as a Deployment with surge does.

    Each proxy moves once: to a new server.
    """
    mesh = surging_mesh
    old, new = mesh.replicas[:3], mesh.replicas[3:]
    async with mesh.row("all new servers first, then the old ones end") as row:
        await asyncio.gather(*(replica.start() for replica in new))
        await mesh.settled()
        before, began = mesh.moves(), time.monotonic()
        await asyncio.gather(*(replica.stop() for replica in old))
        await mesh.settled()
        row.healed = time.monotonic() - began
        moves = (mesh.moves() - before) / len(mesh.observers)
        row.note = f"{moves:.1f} moves an observer"
    assert moves <= MOVES_A_PROXY
