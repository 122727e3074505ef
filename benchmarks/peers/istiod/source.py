"""The benchmarks' mesh in Istio's kinds, in the default or in the narrow scope."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.in_kubernetes.objects import Object
from benchmarks.meshes import generator as meshes
from benchmarks.peers.istiod import objects
from meshwright.mesh.config import TlsVersion


def scopes(services: int) -> Iterator[Object]:
    """Yield the Sidecar resources of the narrow scope, one for each service."""
    return (objects.sidecar(number, services) for number in range(services))


@dataclass(frozen=True, slots=True)
class Istio:
    """Policies of a mesh in Istio's kinds; with `narrow` each service has a Sidecar resource."""

    services: int
    narrow: bool

    def policies(self, number: int, sources: Sequence[int]) -> list[Object]:
        """Return the AuthorizationPolicy, the VirtualService if split, and the Sidecar if narrow."""
        splits = number < self.services and number % meshes.SPLIT_EVERY == 0
        return [
            objects.policy(number, sources),
            *([objects.split(number, self.services, 1)] if splits else []),
            *([objects.sidecar(number, self.services)] if self.narrow else []),
        ]

    def target(self, number: int, sources: Sequence[int], narrow: int | None) -> Object:
        """Return the AuthorizationPolicy; the rights of the caller `narrow` are a rule of their own."""
        return objects.policy(number, sources, narrow)

    def split(self, number: int, weight: int) -> Object:
        """Return the VirtualService of a service, with this weight of the second destination."""
        return objects.split(number, self.services, weight)

    def settings(self, version: TlsVersion) -> Object:
        """Return the ConfigMap of Istio's mesh settings, with a minimum TLS version."""
        return objects.settings(version)
