"""The benchmarks' mesh in a Kubernetes API, whichever control plane is told of it, and its changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.in_kubernetes import objects
from benchmarks.in_kubernetes.objects import Object
from benchmarks.meshes import generator as meshes
from benchmarks.meshes.changes import MOVED, Change, Source
from meshwright.mesh.config import TlsVersion


class Writer(Protocol):
    """What writes to an API, as `benchmarks.in_kubernetes.api` does."""

    def create(self, one: Object) -> None:
        """Create an object."""

    def merge(self, one: Object) -> None:
        """Put an object's body into the one that is there."""

    def delete(self, one: Object) -> None:
        """Delete an object."""


class Words(Protocol):
    """What a control plane is told of a mesh in its own kinds, beside what every one reads."""

    def policies(self, number: int, sources: Sequence[int]) -> list[Object]:
        """Return all of a service, which these others may call."""

    def target(self, number: int, sources: Sequence[int], narrow: int | None) -> Object:
        """Return who may call a service; `narrow`, if told, may less than the others."""

    def split(self, number: int, weight: int) -> Object:
        """Return how a service shares its calls with another, of that weight."""

    def settings(self, version: TlsVersion) -> Object:
        """Return the mesh's settings, with a least TLS version."""


def mesh(services: int, words: Words, replicas: int = 2) -> Iterator[Object]:
    """Yield all that belongs to the services."""
    for number in range(services):
        yield from objects.service(number, replicas)
        yield from words.policies(number, meshes.callers(number, services))


@dataclass(frozen=True, slots=True)
class InKubernetes:
    """A mesh of so many services in a Kubernetes API."""

    api: Writer
    services: int
    words: Words
    replicas: int = 2

    def move(self, number: int, replica: int, place: int) -> None:
        """Give one of the EndpointSlice's endpoints another address: the one write that all go by."""
        moved = {replica: place % 200 + 1}
        found = (meshes.workload(number, each, moved=moved.get(each, 0)) for each in range(self.replicas))
        self.api.merge(objects.endpoints(number, list(found)))

    def turn(self, number: int, replica: int, *, ready: bool) -> None:
        """Say of one of the EndpointSlice's endpoints that it is ready, or is not."""
        found = [meshes.workload(number, each) for each in range(self.replicas)]
        self.api.merge(objects.endpoints(number, found, None if ready else replica))

    def admit(self, source: int, destination: int, *, narrow: bool) -> None:
        """Replace who may call the destination."""
        callers = meshes.callers(destination, self.services)
        self.api.merge(self.words.target(destination, callers, source if narrow else None))

    def weigh(self, number: int, weight: int) -> None:
        """Replace the service's split."""
        self.api.merge(self.words.split(number, weight))

    def appear(self, number: int) -> None:
        """Create all that belongs to the service."""
        for each in self._objects(number):
            self.api.create(each)

    def disappear(self, number: int) -> None:
        """Delete it."""
        for each in self._objects(number):
            self.api.delete(each)

    def demand(self, version: TlsVersion) -> None:
        """Replace the mesh's settings."""
        self.api.merge(self.words.settings(version))

    def _objects(self, number: int) -> list[Object]:
        return [*objects.service(number, self.replicas), *self.words.policies(number, ())]


def turning(source: InKubernetes) -> Change:
    """Return the change that an endpoint of that mesh is ready no more, and at the next time is again."""

    def turn(_: Source, count: int) -> None:
        source.turn(MOVED, 1, ready=count % 2 == 1)

    return Change("an endpoint turns", turn, concerned=lambda services: meshes.callers(MOVED, services))
