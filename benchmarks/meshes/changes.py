"""Changes of a mesh: what a user does, wherever the mesh is written."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from benchmarks.meshes import generator as meshes
from benchmarks.meshes.manifests import MeshFolder
from meshwright.mesh.config import TlsVersion
from meshwright.mesh.objects import MeshObject, ObjectKey

MOVED: Final = 17
"""The service whose endpoint moves; it is no backend of another service's split."""
SPLIT: Final = 2 * meshes.SPLIT_EVERY
"""The service whose split changes its weight."""
NEW: Final = 12_345
"""The service that appears and disappears; its number is none of the mesh's."""


class Source(Protocol):
    """Where a mesh is written, and how it is changed there."""

    def move(self, number: int, replica: int, place: int) -> None:
        """Give a workload another address; places differ from 0 on."""

    def admit(self, source: int, destination: int, *, narrow: bool) -> None:
        """Let a service call all, or a part, of what another offers."""

    def weigh(self, number: int, weight: int) -> None:
        """Give the second backend of a service's split another weight."""

    def appear(self, number: int) -> None:
        """Add a service, its policies and its workloads."""

    def disappear(self, number: int) -> None:
        """Take it away again."""

    def demand(self, version: TlsVersion) -> None:
        """Set the mesh's least TLS version, which stands in every listener and cluster."""


@dataclass(frozen=True, slots=True)
class InFolder:
    """A mesh of so many services in files, which are written, replaced and deleted as a user does."""

    folder: MeshFolder
    services: int
    permissive: bool = False

    def move(self, number: int, replica: int, place: int) -> None:
        """Replace the workload's file."""
        self.folder.write(meshes.workload_file(meshes.workload(number, replica, moved=place % 200 + 1)))

    def admit(self, source: int, destination: int, *, narrow: bool) -> None:
        """Replace the TrafficTarget, in the file of who calls."""
        changed = meshes.target(source, destination, *(("read",) if narrow else ()))
        self._replace(source, changed)

    def weigh(self, number: int, weight: int) -> None:
        """Replace the TrafficSplit, in its service's file."""
        changed = meshes.split(number, self.services, weight)
        self._replace(number, changed)

    def appear(self, number: int) -> None:
        """Write its files."""
        self.folder.write(self._files(number))

    def disappear(self, number: int) -> None:
        """Delete its files."""
        self.folder.remove(self._files(number))

    def demand(self, version: TlsVersion) -> None:
        """Replace the file of the mesh's settings."""
        self.folder.write(meshes.config_file(meshes.config(version, permissive=self.permissive)))

    def _replace(self, number: int, changed: tuple[ObjectKey, MeshObject]) -> None:
        objects = meshes.service_objects(number, self.services)
        self.folder.write(
            meshes.service_file(number, [changed if each[0] == changed[0] else each for each in objects])
        )

    def _files(self, number: int) -> dict[str, str]:
        found = meshes.service_file(number, meshes.service_objects(number, self.services))
        for replica in range(2):
            found |= meshes.workload_file(meshes.workload(number, replica))
        return found


@dataclass(frozen=True, slots=True)
class Change:
    """One kind of change: `write` makes it, given the change's number, which counts from 0.

    `heavy` ones concern every proxy and are repeated less often. `concerned` are the services whose sidecars
    it concerns, by the size of the mesh; None where that is not said beforehand.
    """

    name: str
    write: Callable[[Source, int], None]
    heavy: bool = False
    concerned: Callable[[int], tuple[int, ...]] | None = None


def _endpoint(source: Source, count: int) -> None:
    source.move(MOVED, 1, count)


def _target(source: Source, count: int) -> None:
    source.admit(MOVED - 1, MOVED, narrow=count % 2 == 0)


def _split(source: Source, count: int) -> None:
    source.weigh(SPLIT, count % 100 + 2)


def _appear(source: Source, count: int) -> None:
    del count
    source.appear(NEW)


def _disappear(source: Source, count: int) -> None:
    del count
    source.disappear(NEW)


def _setting(source: Source, count: int) -> None:
    source.demand((TlsVersion.V1_3, TlsVersion.V1_2)[count % 2])


ENDPOINT: Final = Change(
    "one endpoint moves", _endpoint, concerned=lambda services: meshes.callers(MOVED, services)
)
SETTING: Final = Change("a mesh-wide setting changes", _setting, heavy=True)
TARGET: Final = Change("one policy changes", _target)
WEIGHT: Final = Change("a split's weight changes", _split)
APPEARS: Final = Change("a service appears", _appear)
DISAPPEARS: Final = Change("a service disappears", _disappear)
