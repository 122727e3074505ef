"""The benchmarks' mesh as objects in a Kubernetes API, and changes of it, for any control plane."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.in_kubernetes import objects
from benchmarks.in_kubernetes.objects import Object
from benchmarks.meshes import generator as meshes
from benchmarks.meshes.changes import MOVED, Change, Source
from meshwright.mesh.config import TlsVersion


class Writer(Protocol):
    """Writer of objects to an API; see `benchmarks.in_kubernetes.api`."""

    def create(self, one: Object) -> None:
        """Create an object."""

    def merge(self, one: Object) -> None:
        """Merge an object's body into the existing object."""

    def delete(self, one: Object) -> None:
        """Delete an object."""


class Words(Protocol):
    """Policies and settings in a control plane's own kinds.

    Other objects are the same for all control planes.
    """

    def policies(self, number: int, sources: Sequence[int]) -> list[Object]:
        """Return all policies of a service, which allow calls of `sources`."""

    def target(self, number: int, sources: Sequence[int], narrow: int | None) -> Object:
        """Return the policy for calls to a service; the source `narrow` has fewer rights than the others."""

    def split(self, number: int, weight: int) -> Object:
        """Return the split of a service's calls with this weight of the second backend."""

    def settings(self, version: TlsVersion) -> Object:
        """Return the settings of the mesh with this minimum TLS version."""


def mesh(services: int, words: Words, replicas: int = 2) -> Iterator[Object]:
    """Yield the objects and policies of all services of the mesh."""
    for number in range(services):
        yield from objects.service(number, replicas)
        yield from words.policies(number, meshes.callers(number, services))


@dataclass(frozen=True, slots=True)
class InKubernetes:
    """A mesh with `services` services in a Kubernetes API."""

    api: Writer
    services: int
    words: Words
    replicas: int = 2

    def move(self, number: int, replica: int, place: int) -> None:
        """Change the address of an endpoint in the EndpointSlice, which every control plane follows."""
        moved = {replica: place % 200 + 1}
        result = (meshes.workload(number, item, moved=moved.get(item, 0)) for item in range(self.replicas))
        self.api.merge(objects.endpoints(number, list(result)))

    def turn(self, number: int, replica: int, *, ready: bool) -> None:
        """Set whether an endpoint of the EndpointSlice is ready."""
        workloads = [meshes.workload(number, item) for item in range(self.replicas)]
        self.api.merge(objects.endpoints(number, workloads, None if ready else replica))

    def admit(self, source: int, destination: int, *, narrow: bool) -> None:
        """Replace the policy for calls to the destination; with `narrow` the source has fewer rights."""
        callers = meshes.callers(destination, self.services)
        self.api.merge(self.words.target(destination, callers, source if narrow else None))

    def weigh(self, number: int, weight: int) -> None:
        """Replace the traffic split of the service, with another weight of the second backend."""
        self.api.merge(self.words.split(number, weight))

    def appear(self, number: int) -> None:
        """Create all objects and policies of a service."""
        for item in self._objects(number):
            self.api.create(item)

    def disappear(self, number: int) -> None:
        """Delete all objects and policies of a service."""
        for item in self._objects(number):
            self.api.delete(item)

    def demand(self, version: TlsVersion) -> None:
        """Replace the settings of the mesh, with another minimum TLS version."""
        self.api.merge(self.words.settings(version))

    def _objects(self, number: int) -> list[Object]:
        return [*objects.service(number, self.replicas), *self.words.policies(number, ())]


def turning(source: InKubernetes) -> Change:
    """Return a change in which an endpoint becomes unready, and ready again the next time."""

    def turn(_: Source, count: int) -> None:
        source.turn(MOVED, 1, ready=count % 2 == 1)

    return Change("an endpoint turns", turn, concerned=lambda services: meshes.callers(MOVED, services))
