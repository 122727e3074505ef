"""Changes of a mesh as a user makes them: files that are written, replaced or deleted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks import meshes
from benchmarks.manifests import MeshFolder, document, text
from mesh.config import TlsVersion

MOVED: Final = 17
"""The service whose endpoint moves; it is no backend of another service's split."""
NEW: Final = 9990
"""The service that appears and disappears; its number is none of the mesh's."""

Write = Callable[[MeshFolder, int, int], None]
"""Makes a change: the folder, the number of services, and the change's number, which counts from 0."""


@dataclass(frozen=True, slots=True)
class Change:
    """One kind of change. `heavy` ones concern every proxy and are repeated less often.

    `concerned` are the services whose sidecars it concerns, None where that is not said beforehand.
    """

    name: str
    write: Write
    heavy: bool = False
    concerned: Callable[[int], tuple[int, ...]] | None = None


def move(folder: MeshFolder, number: int, replica: int, place: int) -> None:
    """Give a workload another address; places differ from 0 on."""
    folder.write(meshes.workload_file(meshes.workload(number, replica, moved=place % 200 + 1)))


def _endpoint(folder: MeshFolder, services: int, count: int) -> None:
    del services
    move(folder, MOVED, 1, count)


def _target(folder: MeshFolder, services: int, count: int) -> None:
    """Let a service admit its caller's reading alone, or all it asks for."""
    objects = meshes.service_objects(MOVED - 1, services)
    narrow = meshes.target(MOVED - 1, MOVED, *(() if count % 2 else ("read",)))
    folder.write(
        meshes.service_file(
            MOVED - 1, [narrow if key == narrow[0] else (key, value) for key, value in objects]
        )
    )


def _split(folder: MeshFolder, services: int, count: int) -> None:
    number = 2 * meshes.SPLIT_EVERY
    changed = meshes.split(number, services, count % 100 + 2)
    objects = meshes.service_objects(number, services)
    folder.write(
        meshes.service_file(
            number, [changed if key == changed[0] else (key, value) for key, value in objects]
        )
    )


def _new_service(services: int) -> dict[str, str]:
    found = meshes.service_file(NEW, meshes.service_objects(NEW, services))
    for replica in range(2):
        found |= meshes.workload_file(meshes.workload(NEW, replica))
    return found


def _appear(folder: MeshFolder, services: int, count: int) -> None:
    del count
    folder.write(_new_service(services))


def _disappear(folder: MeshFolder, services: int, count: int) -> None:
    del count
    folder.remove(_new_service(services))


def _setting(folder: MeshFolder, services: int, count: int) -> None:
    """Change the mesh's least TLS version, which stands in every listener and cluster."""
    del services
    version = (TlsVersion.V1_3, TlsVersion.V1_2)[count % 2]
    folder.write({"config.yaml": text([document(meshes.CONFIG, meshes.config(version))])})


ENDPOINT: Final = Change(
    "one endpoint moves", _endpoint, concerned=lambda services: meshes.callers(MOVED, services)
)
SETTING: Final = Change("a mesh-wide setting changes", _setting, heavy=True)
APPEARS: Final = Change("a service appears", _appear)
DISAPPEARS: Final = Change("a service disappears", _disappear)
OTHERS: Final = (
    Change("one TrafficTarget changes", _target),
    Change("a split's weight changes", _split),
)
