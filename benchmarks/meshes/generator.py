"""Generator of meshes of any size: each service calls five others; the services are in ten namespaces."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.meshes.manifests import document, text
from meshwright.mesh.config import MeshConfig, SidecarSettings, TlsVersion
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import (
    HTTP_ROUTE_GROUP,
    MESH_CONFIG,
    SERVICE,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    WORKLOAD,
)
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid, ServiceAccountName, ServiceName
from meshwright.mesh.objects import MeshObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.smi import (
    Backend,
    HTTPMatch,
    HTTPRouteGroup,
    PolicyKey,
    RouteKind,
    Rule,
    TrafficSplit,
    TrafficTarget,
)
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort
from meshwright.mesh.workload import Workload, WorkloadKey, WorkloadPort

NAMESPACES: Final = 10
SPLIT_EVERY: Final = 10
MOST: Final = 5
"""Maximum number of replicas of a service; each has its own address."""
CONFIG: Final = ObjectKey(MESH_CONFIG, Namespace("osm-system"), "osm-mesh-config")
_STEPS: Final = (1, 7, 31, 43, 68)
"""Distances by number between a service and the services it calls; tiny meshes have fewer distinct ones."""


@dataclass(frozen=True, slots=True)
class Mesh:
    """A generated mesh: objects by key, including workloads; `size` is the number of services."""

    size: int
    objects: Mapping[ObjectKey, SourcedObject]


def mesh(services: int, replicas: int = 2, *, permissive: bool = False) -> Mesh:
    """Return a mesh: per service a Service, an HTTPRouteGroup, 5 TrafficTargets and `replicas` workloads.

    Every tenth service is the apex of a TrafficSplit between itself and another service of its namespace.
    """
    objects: dict[ObjectKey, SourcedObject] = {}
    _put(objects, CONFIG, config(permissive=permissive))
    for number in range(services):
        for key, value in service_objects(number, services):
            _put(objects, key, value)
        for replica in range(replicas):
            result = workload(number, replica)
            _put(objects, ObjectKey.from_name(WORKLOAD, result.key), result)
    return Mesh(services, dict(sorted(objects.items())))


def service_objects(number: int, services: int) -> list[tuple[ObjectKey, MeshObject]]:
    """Return the objects of one service: the Service, its routes, and the policies for its calls."""
    namespace, name = _namespace(number), _name(number)
    key = PolicyKey(namespace, name)
    port = ServicePort(Port(80), Port(8080), Protocol.HTTP, "http", "name")
    service = Service(ServiceKey(namespace, ServiceName(name)), (port,), (("app", name),))
    matches = (HTTPMatch("read", f"/{name}/.*", ("GET",)), HTTPMatch("write", f"/{name}", ("POST",)))
    result: list[tuple[ObjectKey, MeshObject]] = [
        (ObjectKey(SERVICE, namespace, name), service),
        (ObjectKey(HTTP_ROUTE_GROUP, namespace, name), HTTPRouteGroup(key, matches)),
    ]
    result.extend(target(number, other) for other in called(number, services))
    if number % SPLIT_EVERY == 0:
        result.append(split(number, services, 1))
    return result


def target(source: int, destination: int, *matches: str) -> tuple[ObjectKey, TrafficTarget]:
    """Return a TrafficTarget that allows one service to call another."""
    namespace, name = _namespace(destination), f"{_name(source)}-calls-{_name(destination)}"
    rule = Rule(RouteKind.HTTP, _name(destination), matches)
    value = TrafficTarget(PolicyKey(namespace, name), _identity(destination), (_identity(source),), (rule,))
    return ObjectKey(TRAFFIC_TARGET, namespace, name), value


def split(number: int, services: int, weight: int) -> tuple[ObjectKey, TrafficSplit]:
    """Return a TrafficSplit between a service and another one of its namespace."""
    namespace, name = _namespace(number), _name(number)
    other = ServiceName(_name(backend(number, services)))
    backends = (Backend(ServiceName(name), 10), Backend(other, weight))
    value = TrafficSplit(PolicyKey(namespace, name), ServiceKey(namespace, ServiceName(name)), backends)
    return ObjectKey(TRAFFIC_SPLIT, namespace, name), value


def backend(number: int, services: int) -> int:
    """Return the second backend of a service's split."""
    # A caller one step before the service is 31 steps before this backend, so it may call both.
    return (number + 30) % services


def service_key(number: int) -> ServiceKey:
    """Return the key of a service, for example `team-7/service-17` for 17."""
    return ServiceKey(_namespace(number), ServiceName(_name(number)))


def workload(number: int, replica: int, *, moved: int = 0) -> Workload:
    """Return a replica of a service; `moved` changes its address."""
    name = f"{_name(number)}-{replica}"
    place = number * MOST + replica
    return Workload(
        key=WorkloadKey(_namespace(number), name),
        identity=_identity(number),
        service=ServiceName(_name(number)),
        address=IpAddress(f"10.{moved}.{place // 256}.{place % 256}"),
        uuid=ProxyUuid(f"uuid-{name}"),
        ports=(WorkloadPort(Port(8080), "http"),),
        labels=(("app", _name(number)), ("tier", "mesh")),
    )


def sourced(key: ObjectKey, value: MeshObject) -> SourcedObject:
    """Return an object of the mesh as if read from a file."""
    return SourcedObject(key, value, InFile("mesh.yaml"))


def config(version: TlsVersion = TlsVersion.V1_2, *, permissive: bool = False) -> MeshConfig:
    """Return the mesh-wide settings; the TLS version is part of every listener and cluster."""
    return MeshConfig(permissive=permissive, sidecar=SidecarSettings(tls_min_version=version))


def called(number: int, services: int) -> tuple[int, ...]:
    """Return the services called by a service, for example 1, 7, 31, 43 and 68 for 0 of 1000 services."""
    return tuple(dict.fromkeys((number + step) % services for step in _STEPS))


def callers(number: int, services: int) -> tuple[int, ...]:
    """Return the callers of a service, for a service that is not a backend of another service's split."""
    return tuple(sorted({(number - step) % services for step in _STEPS}))


def proxy_names(services: int) -> list[str]:
    """Return the common names of all sidecars, for example `uuid-service-0-0.service-0.team-0`."""
    return sidecar_names(range(services))


def sidecar_names(numbers: Iterable[int], replicas: int = 2) -> list[str]:
    """Return the common names of the sidecars of these services, in the same order."""
    result = (workload(number, replica) for number in numbers for replica in range(replicas))
    return [str(item.proxy_name) for item in result]


def files(services: int, replicas: int = 2, *, permissive: bool = False) -> dict[str, str]:
    """Return the contents of the mesh's manifest files by name."""
    result = config_file(config(permissive=permissive))
    for number in range(services):
        result |= service_file(number, service_objects(number, services))
        for replica in range(replicas):
            result |= workload_file(workload(number, replica))
    return result


def config_file(value: MeshConfig) -> dict[str, str]:
    """Return name and content of the manifest file of the mesh-wide settings."""
    return {"config.yaml": text([document(CONFIG, value)])}


def service_file(number: int, objects: Iterable[tuple[ObjectKey, MeshObject]]) -> dict[str, str]:
    """Return name and content of the manifest file of one service, for example `team-7/service-17.yaml`."""
    return {
        f"{_namespace(number)}/{_name(number)}.yaml": text(document(key, value) for key, value in objects)
    }


def workload_file(value: Workload) -> dict[str, str]:
    """Return name and content of the manifest file of one workload."""
    key = ObjectKey.from_name(WORKLOAD, value.key)
    return {f"{key.namespace}/{key.name}.yaml": text([document(key, value)])}


def _put(objects: dict[ObjectKey, SourcedObject], key: ObjectKey, value: MeshObject) -> None:
    objects[key] = sourced(key, value)


def _name(number: int) -> str:
    return f"service-{number}"


def _namespace(number: int) -> Namespace:
    return Namespace(f"team-{number % NAMESPACES}")


def _identity(number: int) -> ServiceIdentity:
    return ServiceIdentity(_namespace(number), ServiceAccountName(_name(number)))
