"""Tests that the benchmarks' mesh in files equals the mesh in memory."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.meshes import generator as meshes
from benchmarks.meshes.manifests import MeshFolder
from meshwright.mesh.policies.smi import TrafficTarget
from meshwright.providers.directory.source import DirectorySource

SERVICES = 60


@pytest.fixture
def source(tmp_path: Path) -> DirectorySource:
    """Return the mesh, read from its files."""
    folder = MeshFolder(tmp_path / "mesh")
    folder.write(meshes.files(SERVICES))
    source = DirectorySource(folder.path, lambda: datetime.now(UTC))
    source.load()
    return source


def test_files_are_read_as_the_mesh_without_problems(source: DirectorySource) -> None:
    """Every object and workload is equal."""
    made = meshes.mesh(SERVICES)
    values = {key: sourced_object.value for key, sourced_object in source.objects().items()}
    assert values == {key: sourced_object.value for key, sourced_object in made.objects.items()}
    assert source.problems() == ()


def test_callers_are_those_that_the_policies_admit() -> None:
    """Five services call each service, by TrafficTargets."""
    objects = (sourced_object.value for sourced_object in meshes.mesh(SERVICES).objects.values())
    targets = [item for item in objects if isinstance(item, TrafficTarget)]
    for number in (0, 17, SERVICES - 1):
        admitted = {
            source.service_account
            for target in targets
            if target.destination.service_account == f"service-{number}"
            for source in target.sources
        }
        assert admitted == {f"service-{caller}" for caller in meshes.callers(number, SERVICES)}
        assert len(admitted) == 5


def test_file_is_replaced_atomically(tmp_path: Path) -> None:
    """The watched directory never has a half-written file."""
    folder = MeshFolder(tmp_path / "mesh")
    folder.write({"a/b.yaml": "one\n"})
    folder.write({"a/b.yaml": "two\n"})
    assert [path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*.yaml")] == ["a/b.yaml"]
    assert (folder.path / "a" / "b.yaml").read_text() == "two\n"
    folder.remove(["a/b.yaml"])
    assert list(folder.path.rglob("*.yaml")) == []
