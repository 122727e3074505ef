"""Test of a real Envoy with the addresses of two servers, of which one is killed."""

import json
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.golden.envoys import HERE, RunningEnvoy, keep
from tests.tools.deadline import until
from tests.tools.forked_cli import Typed
from tests.tools.program import Program, Server

pytestmark = pytest.mark.envoy

MOVED_SECONDS: Final = 5.0
"""Longest time without a control plane: Envoy's longest pause between two attempts."""
CHANGES: Final = (
    *("cluster_manager.cluster_added", "cluster_manager.cluster_modified", "cluster_manager.cluster_removed"),
    *("listener_manager.listener_added", "listener_manager.listener_modified"),
    *("listener_manager.listener_removed", "listener_manager.lds.update_rejected"),
    "cluster_manager.cds.update_rejected",
)


@pytest.fixture
def programs(tmp_path: Path, typed: Typed) -> Iterator[tuple[Program, Program]]:
    """Two programs with equal manifests, one CA and one ledger, which has the certificate of the Envoy."""
    one = Program(tmp_path / "one" / "state", tmp_path / "one", typed)
    one.issued("one")
    two = Program(tmp_path / "two" / "state", tmp_path / "two", typed)
    shutil.copytree(one.state, two.state)
    yield one, two
    one.end()
    two.end()


@pytest.fixture
async def ends() -> AsyncIterator[AsyncExitStack]:
    """End the Envoy after the test."""
    async with AsyncExitStack() as stack:
        yield stack


async def _stats(envoy: RunningEnvoy) -> dict[str, int]:
    text = await envoy.text("/stats?format=json") or '{"stats": []}'
    return {item["name"]: item["value"] for item in json.loads(text)["stats"] if "value" in item}


def _streams(server: Server) -> int:
    lines = server.get("/metrics")[1].splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("meshwright_xds_streams{"))


async def test_envoy_of_a_killed_server_goes_on_with_the_other(
    programs: tuple[Program, Program], envoy: str, ends: AsyncExitStack, tmp_path: Path
) -> None:
    """The bootstrap of `meshwright bootstrap` has an IP address and a name.

    The Envoy has the other server within seconds, accepts its answers, and changes no cluster or listener.
    """
    flags = ("--set", "endpoint_admission=off")
    one, two = (
        program.serve(*flags, f"--ads-address={host}:0")
        for program, host in zip(programs, ("127.0.0.1", "[::]"), strict=True)
    )
    ports = [server.bound["ads"].rpartition(":")[2] for server in (one, two)]
    addresses = f"127.0.0.1:{ports[0]},localhost:{ports[1]}"
    folder = tmp_path / "envoy"
    folder.mkdir()
    status, text, errors = programs[0].run(
        *(
            "bootstrap",
            "--credentials",
            str(tmp_path / "one" / "one"),
            "--admin",
            "127.0.0.1:0",
            "--ads",
            addresses,
        )
    )
    assert status == 0, errors
    (folder / "bootstrap.json").write_text(text)
    running = RunningEnvoy(folder, "", await ends.enter_async_context(HERE.session()))
    await keep(envoy, running, HERE, 2, ends)

    async def has_answers(more_than: int) -> bool:
        stats = await _stats(running)
        return (
            stats.get("control_plane.connected_state") == 1
            and stats.get("cluster_manager.cds.update_success", 0) > more_than
            and await running.text("/ready") == "LIVE\n"
        )

    await until(lambda: has_answers(0))
    await until(lambda: _streams(one) + _streams(two) == 1)
    server, other = (one, two) if _streams(one) else (two, one)
    before = await _stats(running)

    server.process.kill()
    server.process.wait()
    await until(lambda: _streams(other) == 1, MOVED_SECONDS)
    await until(lambda: has_answers(before["cluster_manager.cds.update_success"]))

    after = await _stats(running)
    assert {name: after[name] for name in CHANGES} == {name: before[name] for name in CHANGES}
    assert before["listener_manager.listener_added"] > 0
