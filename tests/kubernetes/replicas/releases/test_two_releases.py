"""Servers of two releases in one mesh: a rolling upgrade with all new servers first, and the way back."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import grpc
import pytest

from tests.kubernetes.replicas.conftest import NEW_SERVERS
from tests.kubernetes.replicas.engines import Engine
from tests.kubernetes.replicas.joining import Joining
from tests.kubernetes.replicas.meshes import Mesh, running_mesh
from tests.kubernetes.replicas.releases.other_releases import earlier_release, later_release
from tests.kubernetes.replicas.rows import LONG, Table
from tests.kubernetes.replicas.servers import Replica, until_led
from tests.tools import envoy as envoys
from tests.tools.deadline import until
from tests.tools.forked_cli import Commands, Typed

pytestmark = [pytest.mark.envoy, LONG, pytest.mark.timeout(900)]

MOVES_A_PROXY: Final = 1.2
OBSERVERS: Final = 10
"""So many that one of them may move twice, for example to a server that ends a moment later."""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typed]:
    """Start the process that runs commands of the earlier commit."""
    with Typed(earlier_release(tmp_path_factory.mktemp("earlier") / "release")) as started:
        yield started


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typed]:
    """Start the process that runs commands of this tree with a later version number."""
    with Typed(later_release(tmp_path_factory.mktemp("later") / "release")) as started:
        yield started


async def test_upgrade_from_an_earlier_commit_and_back(
    engine: Engine, earlier: Typed, typed: Typed, tmp_path: Path, table: Table
) -> None:
    """The servers before are those of an earlier commit."""
    await _upgrade_and_return("an earlier commit", engine, earlier, typed, tmp_path, table)


async def test_upgrade_to_a_later_version_and_back(
    engine: Engine, typed: Typed, later: Typed, tmp_path: Path, table: Table
) -> None:
    """The code is the same, and only the version number differs."""
    await _upgrade_and_return("an equal release", engine, typed, later, tmp_path, table)


async def _upgrade_and_return(
    before: str, engine: Engine, old: Typed, new: Typed, folder: Path, table: Table
) -> None:
    def commands(name: str) -> Commands:
        return new if name in NEW_SERVERS else old

    async with running_mesh(
        engine, commands, folder, str(envoys.program()), table, NEW_SERVERS, OBSERVERS
    ) as mesh:
        joining = await Joining.prepared(mesh)
        former, latter = mesh.replicas[:3], mesh.replicas[3:]
        async with mesh.row(f"a rolling upgrade from {before}") as row:
            row.note, row.healed = await _replaced(mesh, former, latter, joining)
        async with mesh.row(f"a rollback to {before}") as row:
            row.note, row.healed = await _replaced(mesh, latter, former, joining)


async def _replaced(
    mesh: Mesh, before: Sequence[Replica], after: Sequence[Replica], joining: Joining
) -> tuple[str, float]:
    """Start all servers of the other release, use both beside each other, and end the former ones.

    Return a remark for the table, and the seconds from the first end until the mesh is settled.
    """
    await asyncio.gather(*(replica.start() for replica in after))
    await mesh.settled()
    versions = {str(item["version"]) for item in (await after[0].view("/replicas"))["replicas"]}
    assert len(versions) == 2, versions
    await _use_both(mesh, before[0], after[0], joining)
    moves, began = mesh.moves(), time.monotonic()
    await asyncio.gather(*(replica.stop() for replica in before))
    await mesh.settled()
    seconds = time.monotonic() - began
    share = (mesh.moves() - moves) / len(mesh.observers)
    assert share <= MOVES_A_PROXY, f"{share} moves an observer"
    assert await until_led(mesh.replicas) in after
    return f"{share:.1f} moves an observer; {' and '.join(sorted(versions))} side by side", seconds


async def _use_both(mesh: Mesh, here: Replica, there: Replica, joining: Joining) -> None:
    """A machine that joins at one release is let in by the other one, and a revocation holds at both."""
    if not joining.has_joined:
        code, text = await joining.ask(there)
        assert code is grpc.StatusCode.OK, (code, text)
        assert await joining.is_let_in(here)
        return
    assert await joining.is_let_in(there)
    revoked = mesh.observers[-1]
    status, said = await there.revoke(mesh.serials[revoked.name])
    assert status == 200, said
    mesh.forget(revoked)
    revoked.addresses = (here.ads,)
    await until(lambda: revoked.is_refused_by({here.ads}))
