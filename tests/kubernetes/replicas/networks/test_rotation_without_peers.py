"""A root rotation while the servers cannot reach each other, but all of them reach the store."""

from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.replicas.engines import Engine
from tests.kubernetes.replicas.meshes import running_mesh
from tests.kubernetes.replicas.roots.envoy_agents import with_agent
from tests.kubernetes.replicas.roots.test_killed_in_rotation import followed, rotated
from tests.kubernetes.replicas.rows import LONG, Table
from tests.kubernetes.replicas.servers import alive, until_led
from tests.tools import envoy as envoys
from tests.tools.deadline import until
from tests.tools.forked_cli import Typed

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(600)]

NAME: Final = "a root rotation without a network between servers"


async def test_root_is_rotated_without_a_network_between_servers(
    engine: Engine, typed: Typed, tmp_path: Path, table: Table
) -> None:
    """The reports about proxies go by the store, so no step waits for the network between servers."""
    async with (
        running_mesh(
            engine, lambda _: typed, tmp_path, str(envoys.program()), table, observers=0, equip=with_agent
        ) as mesh,
        followed(engine) as steps,
    ):
        leader = await until_led(mesh.replicas)
        async with mesh.row(NAME, changes=True) as row:
            for network in mesh.peer_networks.values():
                network.cut()

            async def are_silent() -> bool:
                return all([len((await each.view("/replicas"))["partial"]) == 2 for each in mesh.replicas])

            await until(are_silent)
            row.healed = await rotated(mesh, leader, steps)
            assert await are_silent(), "the servers have reached each other"
            row.note = f"{len(alive(mesh.replicas))} servers, each alone in its views"
