"""The benchmarks' mesh in SMI's kinds, which our server reads from a cluster.

Each service has an HTTPRouteGroup, and a TrafficTarget that allows its five callers; every tenth service has
a TrafficSplit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.in_kubernetes.objects import Kind, Object
from benchmarks.meshes import generator as meshes
from benchmarks.meshes.manifests import document
from meshwright.mesh.config import TlsVersion
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, TRAFFIC_TARGET
from meshwright.mesh.objects import MeshObject, ObjectKey
from meshwright.mesh.policies.smi import PolicyKey, RouteKind, Rule, TrafficTarget

ROUTES: Final = Kind("/apis/specs.smi-spec.io/v1alpha4", "httproutegroups", "HTTPRouteGroup")
TARGET: Final = Kind("/apis/access.smi-spec.io/v1alpha3", "traffictargets", "TrafficTarget")
SPLIT: Final = Kind("/apis/split.smi-spec.io/v1alpha4", "trafficsplits", "TrafficSplit")
CONFIG: Final = Kind("/apis/config.openservicemesh.io/v1alpha2", "meshconfigs", "MeshConfig")
_READ: Final = "read"


@dataclass(frozen=True, slots=True)
class Smi:
    """Policies of a mesh in SMI's kinds, for `services` services."""

    services: int

    def policies(self, number: int, sources: Sequence[int]) -> list[Object]:
        """Return the HTTPRouteGroup, the TrafficTarget, and for every tenth service the TrafficSplit."""
        (routes,) = (
            service_object
            for service_object in meshes.service_objects(number, self.services)
            if service_object[0].kind == HTTP_ROUTE_GROUP
        )
        splits = number < self.services and number % meshes.SPLIT_EVERY == 0
        return [
            _object(ROUTES, *routes),
            self.target(number, sources, None),
            *([self.split(number, 1)] if splits else []),
        ]

    def target(self, number: int, sources: Sequence[int], narrow: int | None) -> Object:
        """Return the TrafficTarget. It has only one rule, so `narrow` narrows the rights of all callers."""
        key = meshes.service_key(number)
        destination, *callers = (meshes.workload(item, 0).identity for item in (number, *sources))
        rule = Rule(RouteKind.HTTP, str(key.name), () if narrow is None else (_READ,))
        policy = PolicyKey(key.namespace, str(key.name))
        value = TrafficTarget(policy, destination, tuple(callers), (rule,))
        return _object(TARGET, ObjectKey(TRAFFIC_TARGET, key.namespace, str(key.name)), value)

    def split(self, number: int, weight: int) -> Object:
        """Return the TrafficSplit of a service, with this weight of the second backend."""
        return _object(SPLIT, *meshes.split(number, self.services, weight))

    def settings(self, version: TlsVersion) -> Object:
        """Return the MeshConfig with this minimum TLS version."""
        return _object(CONFIG, meshes.CONFIG, meshes.config(version))


def _object(kind: Kind, key: ObjectKey, value: MeshObject) -> Object:
    return Object(kind, str(key.namespace), key.name, {"spec": document(key, value)["spec"]})
