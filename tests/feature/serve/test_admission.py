"""Tests of endpoint admission after acknowledged listeners, with the program and real streams."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.meshes import generator as meshes
from benchmarks.meshes.manifests import MeshFolder
from benchmarks.processes.credentials import issue_each
from benchmarks.processes.plane import ControlPlane, control_plane
from certs.custody import LEDGER_FILE
from certs.ledger.sqlite import SqliteLedger
from meshwright.mesh.identity import ProxyName
from tests.feature.serve.delta_sidecar import Sidecar
from tests.tools.deadline import HANG_SECONDS, until
from tests.tools.forked_cli import Command, Typed
from xds.protocol.resources.resource import SECRET

SERVICES = 20
SERVER = 17
CALLED = 5
NAMES = meshes.proxy_names(SERVICES)
CALLER = NAMES[2 * meshes.callers(SERVER, SERVICES)[0]]
ONE, OTHER = NAMES[2 * SERVER], NAMES[2 * SERVER + 1]
AT = {name: str(meshes.workload(SERVER, replica).address) for replica, name in enumerate((ONE, OTHER))}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state directory of a mesh whose sidecars have certificates, but have never connected."""
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


def revoke(typed: Typed, state: Path, name: str) -> None:
    """Revoke a sidecar's certificate with the command."""
    with SqliteLedger.open(state / LEDGER_FILE) as ledger:
        (entry,) = ledger.entries_of(ProxyName.parse(name))
    shown(typed, state, "revoke", entry.serial)


def shown(typed: Typed, state: Path, *command: str) -> dict[str, Any]:
    """Return the JSON of a `certs` command."""
    done = typed.run(Command(state, ("certs", *command, "--state", str(state), "--json"), {}), HANG_SECONDS)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


async def test_accepted_listeners_admit_and_only_revocation_withdraws(state: Path, typed: Typed) -> None:
    """Neither the end of a stream nor a restart of the control plane removes an endpoint."""
    mesh = state.with_name("mesh")
    with control_plane(mesh, state, measured=False) as (plane, _):
        async with connected(plane, state, CALLER) as caller:
            assert addresses(caller) == set()
            before = len(caller.responses)
            async with connected(plane, state, ONE):
                await until(lambda: addresses(caller) == {AT[ONE]})
            async with connected(plane, state, OTHER):  # while the first one is disconnected
                await until(lambda: addresses(caller) == set(AT.values()))
            moved = [item for item in caller.kinds(before) if item[0] in ("Cluster", "ClusterLoadAssignment")]
            assert moved == [("ClusterLoadAssignment", 1)] * 2
    with control_plane(mesh, state, measured=False) as (plane, _):
        async with connected(plane, state, CALLER) as caller:
            assert addresses(caller) == set(AT.values())
            assert [kind for kind, _ in caller.kinds()].count("ClusterLoadAssignment") == CALLED
            await asyncio.to_thread(revoke, typed, state, ONE)
            await until(lambda: addresses(caller) == {AT[OTHER]})


async def test_admission_off_serves_all_endpoints_except_revoked_ones(
    state: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This is the negative control: all endpoints are served at once, but a revoked one is still removed."""
    monkeypatch.setenv("MESHWRIGHT_ENDPOINT_ADMISSION", "off")
    with control_plane(state.with_name("mesh"), state, measured=False) as (plane, _):
        async with connected(plane, state, CALLER) as caller:
            assert set(AT.values()) <= addresses(caller)
            assert len(addresses(caller)) == 2 * CALLED
            await asyncio.to_thread(revoke, typed, state, ONE)
            await until(lambda: AT[ONE] not in addresses(caller))
            assert AT[OTHER] in addresses(caller)


async def test_participation_of_a_sidecar_is_shown_with_its_certificates(state: Path, typed: Typed) -> None:
    """The output has connection, service certificate and source, later the reason of the revocation."""
    with control_plane(state.with_name("mesh"), state, measured=False) as (plane, _):
        async with connected(plane, state, ONE) as sidecar:
            await until(lambda: sidecar.held().get(SECRET) and sidecar.has_all())
            result = await asyncio.to_thread(shown, typed, state, "show", ONE)
            (entry,), (one,) = result["proxy_certificates"], result["participants"]
            (service,) = result["service_certificates"]
            assert (one["takes_part"], one["lacks"], one["serial"]) == (True, [], entry["serial"])
            held = {name: service[name] for name in ("serial", "not_after")}
            assert one["service_certificate"] == held
            assert (entry["state"], entry["in_force"]) == ("claimed", True)
            assert entry["claimed_from"].startswith("127.0.0.1:")
            assert entry["last_seen"] == entry["claimed_at"]

        async def gone() -> bool:
            (one,) = (await asyncio.to_thread(shown, typed, state, "show", ONE))["participants"]
            return bool(one["lacks"] == ["not-connected"])

        await until(gone)
        arguments = ("revoke", entry["serial"], "--reason", "lost in a train")
        await asyncio.to_thread(shown, typed, state, *arguments)
        result = await asyncio.to_thread(shown, typed, state, "show", entry["serial"])
        (entry,), (one,) = result["proxy_certificates"], result["participants"]
        assert (entry["revoked_why"], entry["in_force"]) == ("lost in a train", False)
        assert one["lacks"] == ["certificate-revoked", "not-connected"]
        listed = await asyncio.to_thread(shown, typed, state, "list")
        lacks = {participant["cn"]: participant["lacks"] for participant in listed["participants"]}
        assert lacks == {name: ["never-connected"] for name in NAMES} | {ONE: one["lacks"]}
