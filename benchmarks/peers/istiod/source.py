"""The benchmarks' mesh in a Kubernetes API, and how it is changed there."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from benchmarks import meshes
from benchmarks.peers.istiod import objects
from benchmarks.peers.istiod.objects import Object
from mesh.config import TlsVersion


def mesh(services: int) -> Iterator[Object]:
    """Yield all that belongs to the services."""
    for number in range(services):
        yield from objects.service(number, services, meshes.callers(number, services))


def scopes(services: int) -> Iterator[Object]:
    """Yield the narrow scope: a Sidecar for each service."""
    return (objects.sidecar(number, services) for number in range(services))


class Writer(Protocol):
    """What writes to an API, as `benchmarks.peers.istiod.api` does."""

    def create(self, one: Object) -> None:
        """Create an object."""

    def merge(self, one: Object) -> None:
        """Put an object's body into the one that is there."""

    def delete(self, one: Object) -> None:
        """Delete an object."""


@dataclass(frozen=True, slots=True)
class InKubernetes:
    """A mesh of so many services in a Kubernetes API; `narrow`: each service has a Sidecar."""

    api: Writer
    services: int
    narrow: bool

    def move(self, number: int, replica: int, place: int) -> None:
        """Give one of the EndpointSlice's endpoints another address: the one write that istiod goes by."""
        moved = {replica: place % 200 + 1}
        found = [meshes.workload(number, each, moved=moved.get(each, 0)) for each in range(2)]
        self.api.merge(objects.endpoints(number, found))

    def admit(self, source: int, destination: int, *, narrow: bool) -> None:
        """Replace the rules of the destination's AuthorizationPolicy."""
        callers = meshes.callers(destination, self.services)
        self.api.merge(objects.policy(destination, callers, source if narrow else None))

    def weigh(self, number: int, weight: int) -> None:
        """Replace the VirtualService's routes."""
        self.api.merge(objects.split(number, self.services, weight))

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
        self.api.merge(objects.settings(version))

    def _objects(self, number: int) -> list[Object]:
        found = list(objects.service(number, self.services, ()))
        return [*found, objects.sidecar(number, self.services)] if self.narrow else found
