"""A workload gets calls once its sidecar has acknowledged listeners; the program, and real streams."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchmarks import meshes
from benchmarks.credentials import issue_each
from benchmarks.manifests import MeshFolder
from benchmarks.plane import COMMAND, ControlPlane, control_plane
from certs.ledger.sqlite import SqliteLedger
from certs.opening import LEDGER_FILE
from mesh.identity import ProxyName
from tests.conformance.control import until
from tests.feature.serve.delta_sidecar import Sidecar

SERVICES = 20
SERVER = 17
CALLED = 5
NAMES = meshes.proxy_names(SERVICES)
CALLER = NAMES[2 * meshes.callers(SERVER, SERVICES)[0]]
ONE, OTHER = NAMES[2 * SERVER], NAMES[2 * SERVER + 1]
AT = {name: str(meshes.workload(SERVER, replica).address) for replica, name in enumerate((ONE, OTHER))}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return the state directory of a mesh whose sidecars have certificates, and never came."""
    (tmp_path / "tls").mkdir()
    issue_each(tmp_path / "state", tmp_path / "tls", NAMES)
    MeshFolder(tmp_path / "mesh").write(meshes.files(SERVICES))
    return tmp_path / "state"


@contextlib.asynccontextmanager
async def connected(plane: ControlPlane, state: Path, name: str) -> AsyncIterator[Sidecar]:
    """Connect a sidecar, and wait until it has all its assignments."""
    made = Sidecar(name)
    task = asyncio.create_task(made.run(plane.ads, state.with_name("tls")))
    await until(lambda: len(made.endpoints) == CALLED)
    yield made
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def addresses(sidecar: Sidecar) -> set[str]:
    """Return every endpoint that a sidecar knows."""
    return set().union(*sidecar.endpoints.values())


def revoke(state: Path, name: str) -> None:
    """Revoke a sidecar's certificate as people do."""
    with SqliteLedger.open(state / LEDGER_FILE) as ledger:
        (entry,) = ledger.entries_of(ProxyName.parse(name))
    subprocess.run([*COMMAND, "certs", "revoke", "--state", str(state), entry.serial], check=True)


async def test_the_first_listeners_admit_and_only_revocation_withdraws(state: Path) -> None:
    """A stream that ends and a control plane that is started anew take nobody away."""
    mesh = state.with_name("mesh")
    with control_plane(mesh, state) as (plane, _):
        async with connected(plane, state, CALLER) as caller:
            assert addresses(caller) == set()
            before = len(caller.responses)
            async with connected(plane, state, ONE):
                await until(lambda: addresses(caller) == {AT[ONE]})
            async with connected(plane, state, OTHER):  # while the first one is gone
                await until(lambda: addresses(caller) == set(AT.values()))
            moved = [each for each in caller.kinds(before) if each[0] in ("Cluster", "ClusterLoadAssignment")]
            assert moved == [("ClusterLoadAssignment", 1)] * 2
    with control_plane(mesh, state) as (plane, _):
        async with connected(plane, state, CALLER) as caller:
            assert addresses(caller) == set(AT.values())
            assert [kind for kind, _ in caller.kinds()].count("ClusterLoadAssignment") == CALLED
            await asyncio.to_thread(revoke, state, ONE)
            await until(lambda: addresses(caller) == {AT[OTHER]})


async def test_switched_off_everybody_gets_calls(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as the manifests are read; negative control of the test above."""
    monkeypatch.setenv("MESHWRIGHT_ENDPOINT_ADMISSION", "off")
    with control_plane(state.with_name("mesh"), state) as (plane, _):
        async with connected(plane, state, CALLER) as caller:
            assert set(AT.values()) <= addresses(caller)
            assert len(addresses(caller)) == 2 * CALLED
