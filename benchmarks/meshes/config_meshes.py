"""Meshes in which one part can grow at a time, and the resources of their proxies."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import group_of
from catalog.store.view import MeshSettings, View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import (
    HTTP_ROUTE_GROUP,
    MESH_CONFIG,
    ROUTE_POLICY,
    SERVICE,
    TCP_ROUTE,
    TRAFFIC_TARGET,
    WORKLOAD,
    Kind,
)
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid, ServiceAccountName, ServiceName
from meshwright.mesh.objects import MeshObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.routing import RouteActions, RoutePolicy, RouteRule
from meshwright.mesh.policies.smi import (
    HTTPMatch,
    HTTPRouteGroup,
    PolicyKey,
    RouteKind,
    Rule,
    TCPRoute,
    TrafficTarget,
)
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePattern, ServicePort
from meshwright.mesh.workload import Workload, WorkloadKey
from meshwright.sidecars.contract.driver import each_piece
from meshwright.sidecars.envoy.pieces import parts
from xds.protocol.resources.resource import Resource

SHOP: Final = Namespace("shop")
CLIENT: Final = "client"
SERVER: Final = "service-0"
"""The two measured proxies: a client that calls all services, and the server of the first service."""


@dataclass(frozen=True, slots=True)
class Size:
    """A mesh with a client that calls `services`, all with similar rules; `others` are unrelated services.

    In a `permissive` mesh the client may also call `others`, unless its scope is `narrowed` to the services.
    The first `ruled` matches of each service have a rule in a RoutePolicy.
    """

    services: int = 1
    others: int = 0
    matches: int = 1
    ruled: int = 0
    clients: int = 1
    endpoints: int = 1
    ports: int = 1
    protocol: Protocol = Protocol.HTTP
    permissive: bool = False
    narrowed: bool = False

    @property
    def client(self) -> str:
        """Return the name of the client with its mode, for example `client, permissive`."""
        how = [CLIENT, *(["permissive"] * self.permissive), *(["narrowed"] * self.narrowed)]
        return ", ".join(how)


def view(size: Size) -> View:
    """Return the view of a mesh of this size."""
    objects: dict[ObjectKey, SourcedObject] = {}
    patterns = tuple(ServicePattern(SHOP, ServiceName(f"service-{each}")) for each in range(size.services))
    workloads = [replace(_workload(CLIENT, 0, 0), scope=patterns if size.narrowed else None)]
    if size.permissive:
        key = ObjectKey(MESH_CONFIG, SHOP, "mesh")
        objects[key] = SourcedObject(key, MeshConfig(permissive=True), InFile("benchmark", 1, 1))
    for number in range(size.services + size.others):
        name = f"service-{number}"
        for kind, value in _objects(size, number, name):
            key = ObjectKey(kind, SHOP, name)
            objects[key] = SourcedObject(key, value, InFile("benchmark", 1, 1))
        count = size.endpoints if number < size.services else 1
        workloads += [_workload(name, number + 1, item) for item in range(count)]
    for workload in workloads:
        key = ObjectKey.from_name(WORKLOAD, workload.key)
        objects[key] = SourcedObject(key, workload, InFile("benchmark", 1, 1))
    return View.build(objects, MeshSettings())


def _objects(size: Size, number: int, name: str) -> Iterator[tuple[Kind, MeshObject]]:
    ports = tuple(
        ServicePort(Port(8000 + item), Port(8000 + item), size.protocol, protocol_source="appProtocol")
        for item in range(size.ports)
    )
    yield SERVICE, Service(ServiceKey(SHOP, ServiceName(name)), ports, (("app", name),))
    rule = Rule(RouteKind.HTTP if size.protocol.is_http else RouteKind.TCP, name)
    if size.protocol.is_http:
        matches = tuple(HTTPMatch(f"m{each}", f"/api/{each}/.*", ("GET",)) for each in range(size.matches))
        yield HTTP_ROUTE_GROUP, HTTPRouteGroup(PolicyKey(SHOP, name), matches)
        if size.ruled:
            yield ROUTE_POLICY, _route_policy(name, size.ruled)
    else:
        yield TCP_ROUTE, TCPRoute(PolicyKey(SHOP, name))
    callers = [CLIENT, *(f"client-{item}" for item in range(1, size.clients))]
    # Unrelated services allow another caller, because the client must not be allowed to call them.
    sources = tuple(map(_identity, callers if number < size.services else ["somebody-else"]))
    yield TRAFFIC_TARGET, TrafficTarget(PolicyKey(SHOP, name), _identity(name), sources, (rule,))


def _route_policy(name: str, count: int) -> RoutePolicy:
    actions = RouteActions(timeout=timedelta(seconds=5))
    rules = (RouteRule((Rule(RouteKind.HTTP, name, (f"m{item}",)),), actions) for item in range(count))
    return RoutePolicy(PolicyKey(SHOP, name), ServiceKey(SHOP, ServiceName(name)), tuple(rules))


def _identity(name: str) -> ServiceIdentity:
    return ServiceIdentity(SHOP, ServiceAccountName(name))


def _workload(name: str, number: int, replica: int) -> Workload:
    address = IpAddress(f"10.{replica % 250}.{number // 250}.{number % 250 + 1}")
    return Workload(
        WorkloadKey(SHOP, f"{name}.{replica}"),
        _identity(name),
        ServiceName(name),
        address,
        ProxyUuid(f"{name}-{replica}"),
        labels=(("app", name),),
    )


def sent(mesh: View, proxy: str) -> tuple[Resource, ...]:
    """Return the xDS resources that the proxies of a workload get."""
    workload = mesh.workloads[WorkloadKey(SHOP, f"{proxy}.0")]
    made = each_piece(parts(proxy_policy(mesh, group_of(mesh, workload))))
    return tuple(resource for piece in made for resource in piece.resources())
