"""Tests that a change reaches exactly the affected sidecars, as a small version of the benchmark.

The mesh is that of `make bench-mesh`, and the server runs with default settings.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from benchmarks.meshes import changes
from benchmarks.meshes import generator as meshes
from benchmarks.meshes.manifests import MeshFolder
from benchmarks.processes.credentials import issue_each
from benchmarks.processes.plane import ControlPlane, control_plane
from tests.feature.serve.delta_sidecar import Sidecar
from tests.tools.deadline import until

SERVICES = 20
CALLED = 5
"""Clusters, and so assignments, of a sidecar: those that its service calls."""


@pytest.fixture
def folder(tmp_path: Path) -> MeshFolder:
    """The mesh in files, next to a state directory with every sidecar's certificate."""
    (tmp_path / "tls").mkdir()
    issue_each(tmp_path / "state", tmp_path / "tls", meshes.proxy_names(SERVICES))
    made = MeshFolder(tmp_path / "mesh")
    made.write(meshes.files(SERVICES))
    return made


@pytest.fixture
def plane(folder: MeshFolder) -> Iterator[ControlPlane]:
    """The running server of the mesh."""
    with control_plane(folder.path, folder.path.with_name("state"), measured=False) as (made, _):
        yield made


@pytest.fixture
async def sidecars(folder: MeshFolder, plane: ControlPlane) -> AsyncIterator[list[Sidecar]]:
    """All sidecars, each with both endpoints of every service that it calls."""
    made = [Sidecar(name) for name in meshes.proxy_names(SERVICES)]
    tls = folder.path.with_name("tls")
    tasks = [asyncio.create_task(sidecar.run(plane.ads, tls), name=sidecar.name) for sidecar in made]
    await until(lambda: all(_complete(sidecar) for sidecar in made))
    yield made
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(base_exception) for base_exception in ended} == {asyncio.CancelledError}


def _complete(sidecar: Sidecar) -> bool:
    return [len(endpoint) for endpoint in sidecar.endpoints.values()] == [2] * CALLED


def _before_clusters(sidecar: Sidecar, since: int) -> list[tuple[str, int]] | None:
    """Return the responses before the next clusters, or None while no clusters have come."""
    result = sidecar.kinds(since)
    kinds = [kind for kind, _ in result]
    return result[: kinds.index("Cluster")] if "Cluster" in kinds else None


async def _reached(
    folder: MeshFolder, plane: ControlPlane, sidecars: list[Sidecar], change: changes.Change, first: int
) -> dict[str, list[tuple[str, int]]]:
    """Make a change, and return the responses that it caused, by sidecar.

    After `first` sidecars have a response, a change of the mesh's settings sends clusters to every sidecar. A
    sidecar's earlier responses belong to the first change.
    """
    since = [len(sidecar.responses) for sidecar in sidecars]

    def touched() -> int:
        return sum(len(sidecar.responses) > old for sidecar, old in zip(sidecars, since, strict=True))

    change.write(changes.InFolder(folder, SERVICES), 0)
    await until(lambda: touched() >= first)
    changes.SETTING.write(changes.InFolder(folder, SERVICES), 0)
    pairs = list(zip(sidecars, since, strict=True))
    await until(lambda: all(_before_clusters(sidecar, old) is not None for sidecar, old in pairs))
    return {sidecar.name: came for sidecar, old in pairs if (came := _before_clusters(sidecar, old))}


async def test_moved_endpoint_reaches_only_its_callers(
    folder: MeshFolder, plane: ControlPlane, sidecars: list[Sidecar]
) -> None:
    """Each sidecar of a calling service gets one response with one resource, the others get none."""
    names = meshes.proxy_names(SERVICES)
    callers = [names[2 * number + replica] for number in meshes.callers(17, SERVICES) for replica in (0, 1)]
    before = plane.metrics()
    reached = await _reached(folder, plane, sidecars, changes.ENDPOINT, len(callers))
    assert reached == {name: [("ClusterLoadAssignment", 1)] for name in callers}
    moved = str(meshes.workload(17, 1, moved=1).address)
    assert {sidecar.name for sidecar in sidecars if moved in set().union(*sidecar.endpoints.values())} == set(
        callers
    )
    after = plane.metrics()
    nacks = [value for (name, *_), value in after.items() if name == "meshwright_xds_nacks_total"]
    assert not any(nacks)
    touched = ("meshwright_proxies_touched_total",)
    assert after[touched] - before[touched] == len(callers) + len(sidecars)


async def test_narrower_target_reaches_only_its_destination(
    folder: MeshFolder, plane: ControlPlane, sidecars: list[Sidecar]
) -> None:
    """Only the called service's two sidecars get the route.

    Their listener is sent before it in an interim form, and again after it (O11).
    """
    names = meshes.proxy_names(SERVICES)
    reached = await _reached(folder, plane, sidecars, changes.TARGET, 2)
    pushes = [("Listener", 1), ("RouteConfiguration", 1), ("Listener", 1)]
    assert reached == {names[2 * 17 + replica]: pushes for replica in (0, 1)}
