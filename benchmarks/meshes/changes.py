"""Changes of a mesh as a user makes them, in any source of objects."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from benchmarks.meshes import generator as meshes
from benchmarks.meshes.manifests import MeshFolder
from meshwright.mesh.config import TlsVersion
from meshwright.mesh.objects import MeshObject, ObjectKey

MOVED: Final = 17
"""Service whose endpoint moves; it is a backend of no other service's split."""
SPLIT: Final = 2 * meshes.SPLIT_EVERY
"""Service whose split gets another weight."""
NEW: Final = 12_345
"""Number of the service that appears and disappears; no generated mesh has this number."""


class Source(Protocol):
    """A place with a mesh and ways to change it: a folder of manifests, or a Kubernetes API."""

    def move(self, number: int, replica: int, place: int) -> None:
        """Give a workload another address; consecutive values of `place` give distinct addresses."""

    def admit(self, source: int, destination: int, *, narrow: bool) -> None:
        """Allow a service to call all routes of another, or only some with `narrow`."""

    def weigh(self, number: int, weight: int) -> None:
        """Change the weight of the second backend in a service's split."""

    def appear(self, number: int) -> None:
        """Add a service to the mesh, with its policies and workloads."""

    def disappear(self, number: int) -> None:
        """Remove a service with all objects from the mesh again."""

    def demand(self, version: TlsVersion) -> None:
        """Set the minimum TLS version of the mesh, which is part of every listener and cluster."""


@dataclass(frozen=True, slots=True)
class InFolder:
    """A mesh with `services` services in a folder of manifests."""

    folder: MeshFolder
    services: int
    permissive: bool = False

    def move(self, number: int, replica: int, place: int) -> None:
        """Replace the manifest file of the workload by one with another address."""
        # Never 0, which is the original address; a part of an IPv4 address ends at 255.
        self.folder.write(meshes.workload_file(meshes.workload(number, replica, moved=place % 200 + 1)))

    def admit(self, source: int, destination: int, *, narrow: bool) -> None:
        """Replace the TrafficTarget, in the file of the caller."""
        changed = meshes.target(source, destination, *(("read",) if narrow else ()))
        self._replace(source, changed)

    def weigh(self, number: int, weight: int) -> None:
        """Replace the TrafficSplit, in the file of its service."""
        changed = meshes.split(number, self.services, weight)
        self._replace(number, changed)

    def appear(self, number: int) -> None:
        """Write the files of the service."""
        self.folder.write(self._files(number))

    def disappear(self, number: int) -> None:
        """Delete the files of the service."""
        self.folder.remove(self._files(number))

    def demand(self, version: TlsVersion) -> None:
        """Replace the file of the mesh's settings by one with another minimum TLS version."""
        self.folder.write(meshes.config_file(meshes.config(version, permissive=self.permissive)))

    def _replace(self, number: int, changed: tuple[ObjectKey, MeshObject]) -> None:
        objects = meshes.service_objects(number, self.services)
        self.folder.write(
            meshes.service_file(number, [changed if item[0] == changed[0] else item for item in objects])
        )

    def _files(self, number: int) -> dict[str, str]:
        result = meshes.service_file(number, meshes.service_objects(number, self.services))
        for replica in range(2):
            result |= meshes.workload_file(meshes.workload(number, replica))
        return result


@dataclass(frozen=True, slots=True)
class Change:
    """One kind of change; `write` makes it, and gets the number of the repetition, from 0.

    `heavy` changes affect every proxy and have fewer repetitions. `concerned` returns the services whose
    sidecars are affected, by the size of the mesh; None if they are unknown.
    """

    name: str
    write: Callable[[Source, int], None]
    heavy: bool = False
    concerned: Callable[[int], tuple[int, ...]] | None = None


def _endpoint(source: Source, count: int) -> None:
    source.move(MOVED, 1, count)


# Each repetition differs from the previous one, and the first one from the generated mesh, because for equal
# objects the sidecars would get no response.
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
