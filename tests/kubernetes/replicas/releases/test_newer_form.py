"""A release with a newer form of records: the level of the mesh rises once all servers read the form."""

import asyncio
import time
from pathlib import Path
from typing import Final

import pytest

from meshwright.controller.sharing.record_forms import LEVEL
from meshwright.records.content import NEWEST, Content
from tests.kubernetes.replicas.conftest import NEW_SERVERS
from tests.kubernetes.replicas.engines import Engine
from tests.kubernetes.replicas.meshes import Mesh, running_mesh
from tests.kubernetes.replicas.releases.other_releases import release_with_newer_form
from tests.kubernetes.replicas.rows import LONG, Table
from tests.kubernetes.replicas.servers import until_led
from tests.tools import envoy as envoys
from tests.tools.deadline import until
from tests.tools.forked_cli import Commands, Typed

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(900)]

SEEN_SECONDS: Final = 20
"""Seconds for which the newer release waits for older servers, in place of ten minutes."""


async def test_level_rises_once_all_servers_read_the_form(
    engine: Engine, typed: Typed, tmp_path: Path, table: Table
) -> None:
    """While an older server is here the level stays; afterwards an older server ends with one sentence."""
    with Typed(release_with_newer_form(tmp_path / "newer", NEWEST + 1, SEEN_SECONDS)) as newer:

        def commands(name: str) -> Commands:
            return newer if name in NEW_SERVERS else typed

        async with (
            running_mesh(engine, commands, tmp_path, str(envoys.program()), table, NEW_SERVERS) as mesh,
            mesh.row("a release with a newer form of records") as row,
        ):
            await _is_led_by_newer_servers(mesh)
            began = time.monotonic()
            # The oldest form is noted as the level, which shows that the leader has judged.
            await until(lambda: _is_level(mesh, NEWEST), 6 * SEEN_SECONDS)
            await asyncio.sleep(max(0.0, began + 2 * SEEN_SECONDS - time.monotonic()))
            assert await _level(mesh) == NEWEST, "an older server is here"
            await mesh.replicas[1].stop()
            began = time.monotonic()
            await until(lambda: _is_level(mesh, NEWEST + 1), 6 * SEEN_SECONDS)
            row.healed = time.monotonic() - began
            sentence = await mesh.replicas[1].refused()
            assert f"records of form {NEWEST + 1}" in sentence, sentence
            assert "upgrade this server" in sentence, sentence
            row.note = "the level rose after the last older server; an older one does not start any more"


async def _is_led_by_newer_servers(mesh: Mesh) -> None:
    """Start the newer servers, end the older ones, and start one of these again, which then does not lead."""
    older, newer = mesh.replicas[:3], mesh.replicas[3:]
    await asyncio.gather(*(replica.start() for replica in newer))
    await mesh.settled()
    await asyncio.gather(*(replica.stop() for replica in older))
    await until_led(mesh.replicas)
    await older[1].start()
    await mesh.settled()


async def _is_level(mesh: Mesh, level: int) -> bool:
    return await _level(mesh) == level


async def _level(mesh: Mesh) -> object:
    """Return the level of the mesh, 0 without a record."""
    record = await mesh.engine.records("hand").read(LEVEL)
    return 0 if record is None else Content.decode(record.content).fields["level"]
