"""Meshes of any size for benchmarks: services that call five others each, in several namespaces."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mesh.config import MeshConfig
from mesh.endpoints import Inventory
from mesh.identity import ServiceIdentity
from mesh.names import IpAddress, Namespace, Port, ProxyUuid, ServiceAccountName, ServiceName
from mesh.objects import MeshObject, ObjectKey, Origin, Sourced
from mesh.policy import (
    Backend,
    HTTPMatch,
    HTTPRouteGroup,
    PolicyKey,
    RouteKind,
    Rule,
    TrafficSplit,
    TrafficTarget,
)
from mesh.service import Protocol, Service, ServiceKey, ServicePort
from mesh.workload import Workload, WorkloadKey, WorkloadPort

NAMESPACES: Final = 10
SPLIT_EVERY: Final = 10
CONFIG: Final = ObjectKey("MeshConfig", Namespace("osm-system"), "osm-mesh-config")
_STEPS: Final = (1, 7, 31, 101, 163)
"""How far apart, by number, a service and those it calls are."""


@dataclass(frozen=True, slots=True)
class Mesh:
    """Objects and workloads by key; `size` is the number of services."""

    size: int
    objects: Mapping[ObjectKey, Sourced]
    workloads: Mapping[WorkloadKey, Workload]

    def inventory(self) -> Inventory:
        """Return the workloads as a provider has them."""
        return Inventory(tuple(self.workloads.values()))


def mesh(services: int, replicas: int = 2) -> Mesh:
    """Make a mesh: per service a Service, an HTTPRouteGroup, 5 TrafficTargets and `replicas` workloads.

    Every tenth service is the apex of a TrafficSplit between itself and another of its namespace.
    """
    objects: dict[ObjectKey, Sourced] = {}
    workloads: dict[WorkloadKey, Workload] = {}
    _put(objects, CONFIG, MeshConfig())
    for number in range(services):
        for key, value in service_objects(number, services):
            _put(objects, key, value)
        for replica in range(replicas):
            found = workload(number, replica)
            workloads[found.key] = found
    return Mesh(services, dict(sorted(objects.items())), dict(sorted(workloads.items())))


def service_objects(number: int, services: int) -> list[tuple[ObjectKey, MeshObject]]:
    """Return what belongs to one service: who it is, what it offers, and whom it calls."""
    namespace, name = _namespace(number), _name(number)
    key = PolicyKey(namespace, name)
    port = ServicePort(Port(80), Port(8080), Protocol.HTTP, "http", "name")
    service = Service(ServiceKey(namespace, ServiceName(name)), (port,), (("app", name),))
    matches = (HTTPMatch("read", f"/{name}/.*", ("GET",)), HTTPMatch("write", f"/{name}", ("POST",)))
    found: list[tuple[ObjectKey, MeshObject]] = [
        (ObjectKey("Service", namespace, name), service),
        (ObjectKey("HTTPRouteGroup", namespace, name), HTTPRouteGroup(key, matches)),
    ]
    found.extend(target(number, (number + step) % services) for step in _STEPS)
    if number % SPLIT_EVERY == 0:
        found.append(split(number, 1))
    return found


def target(source: int, destination: int, *matches: str) -> tuple[ObjectKey, TrafficTarget]:
    """Let one service call another."""
    namespace, name = _namespace(destination), f"{_name(source)}-calls-{_name(destination)}"
    rule = Rule(RouteKind.HTTP, _name(destination), matches)
    value = TrafficTarget(PolicyKey(namespace, name), _identity(destination), (_identity(source),), (rule,))
    return ObjectKey("TrafficTarget", namespace, name), value


def split(number: int, weight: int) -> tuple[ObjectKey, TrafficSplit]:
    """Let a service share its calls with another of its namespace."""
    namespace, name = _namespace(number), _name(number)
    other = ServiceName(_name(number + 30))  # callers by the steps 1 and 31 may call both
    backends = (Backend(ServiceName(name), 10), Backend(other, weight))
    value = TrafficSplit(PolicyKey(namespace, name), ServiceKey(namespace, ServiceName(name)), backends)
    return ObjectKey("TrafficSplit", namespace, name), value


def workload(number: int, replica: int, *, moved: int = 0) -> Workload:
    """Return a replica of a service; `moved` gives it another address."""
    name = f"{_name(number)}-{replica}"
    place = number * 4 + replica
    return Workload(
        key=WorkloadKey(_namespace(number), name),
        identity=_identity(number),
        service=ServiceName(_name(number)),
        address=IpAddress(f"10.{moved}.{place // 256}.{place % 256}"),
        uuid=ProxyUuid(f"uuid-{name}"),
        ports=(WorkloadPort(Port(8080), "http"),),
        labels=(("app", _name(number)), ("tier", "mesh")),
    )


def sourced(key: ObjectKey, value: MeshObject) -> Sourced:
    """Return an object as a source has it."""
    return Sourced(key, value, Origin("mesh.yaml"))


def _put(objects: dict[ObjectKey, Sourced], key: ObjectKey, value: MeshObject) -> None:
    objects[key] = sourced(key, value)


def _name(number: int) -> str:
    return f"service-{number}"


def _namespace(number: int) -> Namespace:
    return Namespace(f"team-{number % NAMESPACES}")


def _identity(number: int) -> ServiceIdentity:
    return ServiceIdentity(_namespace(number), ServiceAccountName(_name(number)))
