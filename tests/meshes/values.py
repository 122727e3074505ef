"""Short constructors of mesh values for the catalog's tests; the namespace is `default` by default."""

from datetime import UTC, datetime

import catalog.store.inventory
import catalog.store.osm
import catalog.store.smi  # noqa: F401 - declares the policies that a view may be made of
from catalog.store.view import MeshSettings, View
from certs.keys.material import PrivateKey, ServiceCertificate
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import DEPLOYMENT, ENDPOINT_SLICE, MESH_CONFIG, POD, SERVICE, WORKLOAD
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid, ServiceAccountName, ServiceName
from meshwright.mesh.objects import EndpointSlice, MeshObject, NamespaceObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.authorization import ExternalAuthorization
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.client_traffic import ClientTrafficPolicy
from meshwright.mesh.policies.egress import Egress, EgressPort, EgressProtocol
from meshwright.mesh.policies.ingress import IngressBackend, IngressPort, Proof
from meshwright.mesh.policies.limits import UpstreamTrafficSetting
from meshwright.mesh.policies.mutual_tls import MutualTLS
from meshwright.mesh.policies.retries import Retry
from meshwright.mesh.policies.roots import MeshRootCertificate
from meshwright.mesh.policies.routing import RoutePolicy
from meshwright.mesh.policies.smi import (
    Backend,
    HeaderMatch,
    HTTPMatch,
    HTTPRouteGroup,
    PolicyKey,
    RouteKind,
    Rule,
    TCPRoute,
    TrafficSplit,
    TrafficTarget,
)
from meshwright.mesh.policies.telemetry import ExtensionService, Telemetry
from meshwright.mesh.policies.upstreams import UpstreamPolicy
from meshwright.mesh.service import Protocol, Scope, Service, ServiceKey, ServicePattern, ServicePort
from meshwright.mesh.workload import (
    Explicit,
    Interception,
    PodTemplate,
    Transparent,
    Upstream,
    Workload,
    WorkloadKey,
    WorkloadPort,
)
from meshwright.specs.annotations import PERMISSIVE
from meshwright.specs.kinds import kind_meant

DEFAULT = Namespace("default")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
HTTP, TCP = Protocol.HTTP, Protocol.TCP
TRANSPARENT = Transparent()


def identity(name: str, namespace: str = "default") -> ServiceIdentity:
    """Make an identity."""
    return ServiceIdentity(Namespace(namespace), ServiceAccountName(name))


def service_key(name: str, namespace: str = "default") -> ServiceKey:
    """Make a service's key."""
    return ServiceKey(Namespace(namespace), ServiceName(name))


def policy_key(name: str, namespace: str = "default") -> PolicyKey:
    """Make a policy's key."""
    return PolicyKey(Namespace(namespace), name)


def port(
    number: int,
    target: int | str = 8080,
    protocol: Protocol = HTTP,
    name: str = "",
    source: str = "appProtocol",
) -> ServicePort:
    """Make a service's port."""
    result = Port(target) if isinstance(target, int) else target
    return ServicePort(Port(number), result, protocol, name, source)


def service(
    name: str,
    *ports: ServicePort,
    app: str | None = "",
    namespace: str = "default",
    address: str | None = None,
    headless: bool = False,
) -> Service:
    """Make a service that selects `app=<app>`, by default its own name; `app=None` is no selector."""
    selector = () if app is None else (("app", app or name),)
    cluster_ip = None if address is None else IpAddress(address)
    return Service(service_key(name, namespace), ports or (port(80),), selector, cluster_ip, headless)


def workload(
    name: str,
    address: str,
    *ports: WorkloadPort,
    app: str = "",
    account: str = "",
    primary: str = "",
    namespace: str = "default",
    sidecar: bool = True,
    interception: Interception = TRANSPARENT,
    weight: int = 1,
    scope: Scope = None,
) -> Workload:
    """Make a workload with label `app`, ServiceAccount and primary service, all by default its name."""
    return Workload(
        key=WorkloadKey(Namespace(namespace), name),
        identity=identity(account or name, namespace),
        service=ServiceName(primary or app or name),
        address=IpAddress(address),
        uuid=ProxyUuid(f"{name}-uuid") if sidecar else None,
        ports=ports,
        labels=(("app", app or name),),
        interception=interception,
        weight=weight,
        scope=scope,
    )


def pod(name: str, address: str) -> SourcedObject:
    """Make a workload that was read from a Pod."""
    key = ObjectKey(POD, DEFAULT, name)
    return SourcedObject(key, workload(name, address), InFile("test"))


def deployment(name: str, *ports: WorkloadPort, account: str = "", app: str = "") -> PodTemplate:
    """Make the pod template of a Deployment, by default with its name as label `app` and ServiceAccount."""
    labels = (("app", app or name),)
    return PodTemplate(DEPLOYMENT, WorkloadKey(DEFAULT, name), identity(account or name), labels, ports)


def namespace(name: str, *, permissive: bool | None = None, scope: Scope = None) -> NamespaceObject:
    """Make a Namespace with the values of its annotations."""
    answer = () if permissive is None else ((PERMISSIVE, "true" if permissive else "false"),)
    return NamespaceObject(Namespace(name), (), answer, permissive, scope)


def narrowed(*services: str) -> Scope:
    """Make a scope from patterns `namespace/name`, either part of which may be `*`."""
    pairs = (item.split("/") for item in services)
    return tuple(
        ServicePattern(None if space == "*" else Namespace(space), None if name == "*" else ServiceName(name))
        for space, name in pairs
    )


def explicit(application: str | None, *upstreams: tuple[str, int, str, int]) -> Explicit:
    """Make an explicit interception; an upstream is service, its port, local address and port."""
    result = (
        Upstream(service_key(name), Port(number), IpAddress(local), Port(local_port))
        for name, number, local, local_port in upstreams
    )
    return Explicit(None if application is None else IpAddress(application), tuple(result))


def match(
    name: str, path: str | None = None, *methods: str, headers: tuple[tuple[str, str], ...] = ()
) -> HTTPMatch:
    """Make an HTTP match."""
    return HTTPMatch(name, path, methods, tuple(HeaderMatch(item, regex) for item, regex in headers))


def route_group(name: str, *matches: HTTPMatch) -> HTTPRouteGroup:
    """Make an HTTPRouteGroup."""
    return HTTPRouteGroup(policy_key(name), matches)


def tcp_route(name: str, *ports: int) -> TCPRoute:
    """Make a TCPRoute."""
    return TCPRoute(policy_key(name), tuple(map(Port, ports)))


def http(name: str, *matches: str) -> Rule:
    """Make a rule for an HTTPRouteGroup."""
    return Rule(RouteKind.HTTP, name, matches)


def tcp(name: str) -> Rule:
    """Make a rule for a TCPRoute."""
    return Rule(RouteKind.TCP, name)


def target(name: str, source: str, destination: str, *rules: Rule, only: int | None = None) -> TrafficTarget:
    """Make a TrafficTarget from one source to one destination."""
    inbound_port = None if only is None else Port(only)
    return TrafficTarget(policy_key(name), identity(destination), (identity(source),), rules, inbound_port)


def egress(
    name: str,
    source: str,
    *ports: tuple[int, str],
    hosts: tuple[str, ...] = (),
    networks: tuple[str, ...] = (),
    groups: tuple[str, ...] = (),
    limits: str | None = None,
) -> Egress:
    """Make an Egress of one source, at ports with their protocols."""
    there = tuple(sorted(EgressPort(Port(number), EgressProtocol(spoken)) for number, spoken in ports))
    return Egress(policy_key(name), (identity(source),), there, hosts, networks, groups, limits)


def ingress(
    name: str,
    *backends: tuple[str, int, str],
    services: tuple[str, ...] = (),
    ranges: tuple[str, ...] = (),
    principals: tuple[str, ...] = (),
    server_names: tuple[str, ...] = (),
    matches: tuple[str, ...] = (),
    created: str = "",
) -> IngressBackend:
    """Make an IngressBackend: backends are services, target ports, and requirements for clients."""
    ports = tuple(
        IngressPort(service_key(item), Port(number), Proof[proof], server_names if proof != "NOTHING" else ())
        for item, number, proof in backends
    )
    return IngressBackend(
        policy_key(name),
        ports,
        tuple(map(service_key, services)),
        tuple(map(IpRange, ranges)),
        principals,
        matches,
        created,
    )


def split(
    name: str, apex: str, *backends: tuple[str, int], matches: tuple[str, ...] = (), created: str = ""
) -> TrafficSplit:
    """Make a TrafficSplit."""
    shares = tuple(Backend(ServiceName(item), weight) for item, weight in backends)
    return TrafficSplit(policy_key(name), service_key(apex), shares, matches, created)


def certificate(identity: ServiceIdentity, serial: str) -> ServiceCertificate:
    """Return a placeholder of a certificate."""
    return ServiceCertificate(
        identity, serial, EPOCH, EPOCH, (), f"chain {serial}".encode(), PrivateKey(b"key " + serial.encode())
    )


def view(*things: object, settings: MeshSettings | None = None) -> View:
    """Make a view of objects; the origin of the n-th is `test:n`."""
    return View.build(objects(*things), settings or MeshSettings())


def objects(*things: object) -> dict[ObjectKey, SourcedObject]:
    """Make objects in force, in the form of a source; the origin of the n-th is `test:n`."""
    result = (
        SourcedObject(object_key(item), _value(item), InFile("test", 1, number))
        for number, item in enumerate(things, 1)
    )
    return {sourced_object.key: sourced_object for sourced_object in result}


def object_key(thing: object) -> ObjectKey:
    """Return the key of an object of the tests."""
    match thing:
        case NamespaceObject(name=of):
            return ObjectKey.of_namespace(of)
        case MeshConfig():
            return ObjectKey(MESH_CONFIG, Namespace("osm-system"), "osm-mesh-config")
        case Service(key=key):
            return ObjectKey.from_name(SERVICE, key)
        case Workload(key=at):
            return ObjectKey.from_name(WORKLOAD, at)
        case EndpointSlice(namespace=at_namespace, name=named):
            return ObjectKey(ENDPOINT_SLICE, at_namespace, named)
        case PodTemplate(kind=kind, key=at):
            return ObjectKey.from_name(kind, at)
        case (
            Egress(key=name)
            | HTTPRouteGroup(key=name)
            | IngressBackend(key=name)
            | MeshRootCertificate(key=name)
            | ClientTrafficPolicy(key=name)
            | ExternalAuthorization(key=name)
            | MutualTLS(key=name)
            | Retry(key=name)
            | RoutePolicy(key=name)
            | UpstreamPolicy(key=name)
            | Telemetry(key=name)
            | ExtensionService(key=name)
            | TCPRoute(key=name)
            | TrafficSplit(key=name)
            | TrafficTarget(key=name)
            | UpstreamTrafficSetting(key=name)
        ):
            return ObjectKey.from_name(kind_meant(type(thing).__name__, None), name)
        case _:
            raise TypeError(f"no key for {thing!r}")


def _value(thing: object) -> MeshObject:
    assert isinstance(
        thing,
        Egress
        | EndpointSlice
        | MeshConfig
        | MeshRootCertificate
        | NamespaceObject
        | PodTemplate
        | Service
        | Workload
        | HTTPRouteGroup
        | IngressBackend
        | TCPRoute
        | TrafficSplit
        | TrafficTarget
        | UpstreamTrafficSetting
        | Retry
        | RoutePolicy
        | UpstreamPolicy
        | Telemetry
        | ExtensionService
        | MutualTLS
        | ClientTrafficPolicy
        | ExternalAuthorization,
    )
    return thing
