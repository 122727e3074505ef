"""Random meshes and their changes, small enough that most objects affect each other."""

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from ipaddress import IPv4Network

from catalog.store.edits import Edits
from catalog.store.settings import Admission, EndpointAdmission
from catalog.store.view import MeshSettings
from certs.keys.material import ServiceCertificate
from meshwright.mesh.config import MeshConfig, SidecarSettings, TlsVersion
from meshwright.mesh.gateway.routes import GRPCRoute, HTTPRoute, TLSRoute
from meshwright.mesh.gateway.routes import TCPRoute as GatewayTCPRoute
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.kinds import (
    DEPLOYMENT,
    EGRESS,
    EXTENSION_SERVICE,
    EXTERNAL_AUTHORIZATION,
    HTTP_ROUTE_GROUP,
    INGRESS_BACKEND,
    MESH_CONFIG,
    MUTUAL_TLS,
    RETRY,
    ROUTE_POLICY,
    SERVICE,
    TCP_ROUTE,
    TELEMETRY,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    UPSTREAM_POLICY,
    UPSTREAM_TRAFFIC_SETTING,
)
from meshwright.mesh.names import (
    IpAddress,
    Namespace,
    Port,
    ProxyUuid,
    ServiceAccountName,
    ServiceName,
    TrustDomain,
)
from meshwright.mesh.objects import EndpointSlice, MeshObject, NamespaceObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.authorization import Authorizer, ExternalAuthorization
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.egress import Egress, EgressPort, EgressProtocol
from meshwright.mesh.policies.ingress import IngressBackend, IngressPort, Proof
from meshwright.mesh.policies.limits import (
    ConnectionLimits,
    RateLimit,
    RateLimits,
    RateUnit,
    RouteRate,
    UpstreamTrafficSetting,
)
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.policies.rate_services import (
    CountedConnections,
    CountedRequests,
    RateLimitService,
    RemoteAddress,
)
from meshwright.mesh.policies.retries import Retries, Retry, RetryCondition
from meshwright.mesh.policies.routing import RouteActions, RoutePolicy, RouteRule
from meshwright.mesh.policies.smi import (
    Backend,
    HTTPMatch,
    HTTPRouteGroup,
    PolicyKey,
    RouteKind,
    Rule,
    TCPRoute,
    TrafficSplit,
    TrafficTarget,
)
from meshwright.mesh.policies.telemetry import (
    AccessLog,
    ExtensionService,
    JsonFormat,
    LogExport,
    LogFilter,
    Telemetry,
    TextFormat,
)
from meshwright.mesh.policies.upstreams import (
    BalancingAlgorithm,
    HashKey,
    HealthCheck,
    KeyKind,
    LoadBalancing,
    LocalityPreference,
    LocalityScope,
    OutlierDetectionOverride,
    UpstreamPolicy,
)
from meshwright.mesh.service import Protocol, Scope, Service, ServiceKey, ServicePattern, ServicePort
from meshwright.mesh.workload import (
    Capture,
    Explicit,
    Health,
    Interception,
    PodTemplate,
    Transparent,
    Upstream,
    Workload,
    WorkloadKey,
    WorkloadPort,
)
from meshwright.specs.annotations import PERMISSIVE
from tests.meshes import values as a
from tests.meshes.random_gateway_routes import gateway_route

NAMES = ("a", "b", "b")
NAMESPACES = (*[Namespace("one")] * 7, Namespace("two"))
ADDRESSES = tuple(IpAddress(item) for item in ("10.0.0.1", "10.0.0.2", "fd00::3", "127.0.0.1"))
ROOTS = (b"root 1", b"root 2")


@dataclass
class Mesh:
    """All inputs of a wave."""

    objects: dict[ObjectKey, SourcedObject] = field(default_factory=dict)
    workloads: dict[WorkloadKey, Workload] = field(default_factory=dict)
    slices: dict[EndpointSlice, EndpointSlice] = field(default_factory=dict)
    certificates: dict[ServiceIdentity, ServiceCertificate] = field(default_factory=dict)
    admissions: dict[ProxyName, Admission] = field(default_factory=dict)
    roots: bytes = ROOTS[0]
    settings: MeshSettings = field(default_factory=MeshSettings)

    def known(self) -> Edits:
        """Return the inputs of a view."""
        endpoints = a.objects(*self.workloads.values(), *self.slices)
        return Edits({**self.objects, **endpoints}, self.admissions)


def changed(dice: random.Random, mesh: Mesh) -> None:
    """Change one thing of a mesh. Limits use separate dice, so that earlier findings stay reproducible."""
    others = random.Random(_thrown(dice))  # noqa: S311 - dice
    _limits(others, mesh)
    _retry(others, mesh)
    _route_policy(others, mesh)
    _upstream_policy(others, mesh)
    _mutual_tls(others, mesh)
    _telemetry(others, mesh)
    _authorization(others, mesh)
    _gateway_route(random.Random(_thrown(dice) + 1), mesh)  # noqa: S311 - dice
    kind = dice.randrange(24)
    if kind < 12:
        key, value = dice.choice((_service, _target, _target, _group, _group, _tcp, _split, _split))(dice)
        _put(dice, mesh, key, value)
        if isinstance(value, TrafficTarget):
            _put_beside(mesh, *_egress(value))
        if isinstance(value, Service):
            _put_beside(mesh, *_ingress(value))
    elif kind < 16:
        workload = _as_in_a_cluster(_workload(dice))
        if dice.random() < 0.25:
            mesh.workloads.pop(workload.key, None)
        else:
            mesh.workloads[workload.key] = workload
    elif kind == 16:
        _slice(dice, mesh)
    elif kind == 17:
        _put(dice, mesh, *_config(dice))
    elif kind == 18:
        _certificate(dice, mesh)
    elif kind < 21:
        _put(dice, mesh, *_namespace(dice))
    elif kind < 23:
        _admission(dice, mesh)
    else:
        mesh.settings = dice.choice(SETTINGS)


def _thrown(dice: random.Random) -> int:
    """Return a number derived from the dice's state, without throwing them."""
    state: tuple[int, ...] = dice.getstate()[1]
    return state[0] + state[-1]


def _limits(dice: random.Random, mesh: Mesh) -> None:
    if dice.random() < 0.8:
        return
    key = _key(dice)
    limit = dice.choice((None, 1, 2))
    rate = None if limit is None else RateLimit(limit, RateUnit.SECOND)
    route = RouteRate("/a.*", RateLimit(1, RateUnit.HOUR), ((RemoteAddress(),),))
    asked = RateLimitService(HostPort("limiter", 8081), "shop")
    # No dice are thrown for it: meshes that tests name by their number stay as they are.
    connections, requests = (_thrown(dice) % number == 0 for number in (2, 3))
    named = f"{dice.choice(NAMES)}.{dice.choice(NAMESPACES)}"
    setting = UpstreamTrafficSetting(
        key,
        "x.test" if connections and requests else named,
        ConnectionLimits(connections=dice.choice((None, 1)), requests=limit),
        RateLimits(
            dice.choice((None, rate)),
            rate,
            dice.choice(((), (route,))),
            CountedConnections(asked, ((("a", "b"),),)) if connections else None,
            CountedRequests(asked, ((RemoteAddress(),),)) if requests else None,
        ),
        dice.choice(("", "2026-01-01T00:00:00Z")),
    )
    _put(dice, mesh, ObjectKey.from_name(UPSTREAM_TRAFFIC_SETTING, key), setting)


def _telemetry(dice: random.Random, mesh: Mesh) -> None:
    if dice.random() < 0.7:
        return
    key, service = _key(dice), _key(dice)
    export = dice.choice((None, LogExport(service, (("a", "%DURATION%"),))))
    log = AccessLog(
        dice.choice((None, TextFormat("%DURATION%"), JsonFormat('{"a": "%DURATION%"}'))),
        stdout=dice.random() < 0.5,
        export=export,
        filter=LogFilter(dice.choice((None, 500)), percent=dice.choice((1.0, 100.0))),
    )
    selector = dice.choice(((), (("app", dice.choice(NAMES)),)))
    answer = dice.choice((None, log)), dice.choice((None, 5.0))
    _put(dice, mesh, ObjectKey.from_name(TELEMETRY, key), Telemetry(key, selector, *answer))
    if dice.random() < 0.7:
        extension_service = ExtensionService(service, HostPort("collector", dice.choice((4317, 4318))))
        _put(dice, mesh, ObjectKey.from_name(EXTENSION_SERVICE, service), extension_service)


def _retry(dice: random.Random, mesh: Mesh) -> None:
    if dice.random() < 0.9:
        return
    key, on = _key(dice), dice.sample(tuple(RetryCondition), 2)
    source = ServiceIdentity(key.namespace, ServiceAccountName(dice.choice(NAMES)))
    called = ServiceKey(dice.choice(NAMESPACES), ServiceName(dice.choice(NAMES)))
    created = dice.choice(("", "2026-01-01T00:00:00Z"))
    retry = Retry(key, source, (called,), Retries(tuple(on), dice.choice((1, 2))), created)
    _put(dice, mesh, ObjectKey.from_name(RETRY, key), retry)


def _route_policy(dice: random.Random, mesh: Mesh) -> None:
    if dice.random() < 0.9:
        return
    key, group = _key(dice), Rule(RouteKind.HTTP, dice.choice(NAMES))
    service = ServiceKey(key.namespace, ServiceName(dice.choice(NAMES)))
    actions = RouteActions(timedelta(seconds=dice.choice((1, 2))))
    rules = (RouteRule((group,), actions), RouteRule((), RouteActions(timedelta(seconds=9))))
    created = dice.choice(("", "2026-01-01T00:00:00Z"))
    policy = RoutePolicy(key, service, rules[: dice.choice((1, 2))], created)
    _put(dice, mesh, ObjectKey.from_name(ROUTE_POLICY, key), policy)


def _upstream_policy(dice: random.Random, mesh: Mesh) -> None:
    if dice.random() < 0.9:
        return
    key = _key(dice)
    service = ServiceKey(key.namespace, ServiceName(dice.choice(NAMES)))
    hashed = LoadBalancing(
        BalancingAlgorithm.CONSISTENT_HASH, HashKey(KeyKind.HEADER, dice.choice(("x-a", "x-b")))
    )
    load = dice.choice((LoadBalancing(), LoadBalancing(BalancingAlgorithm.RANDOM), hashed))
    created = dice.choice(("", "2026-01-01T00:00:00Z"))
    ejecting = dice.choice((None, OutlierDetectionOverride(0), OutlierDetectionOverride(3)))
    checking = dice.choice((None, HealthCheck(None), HealthCheck("/well")))
    nearest = (
        None,
        LocalityPreference(LocalityScope.ZONE),
        LocalityPreference(LocalityScope.REGION, fails_over=False),
    )[_thrown(dice) % 3]
    policy = UpstreamPolicy(key, service, ejecting, load, checking, created, nearest)
    _put(dice, mesh, ObjectKey.from_name(UPSTREAM_POLICY, key), policy)


def _mutual_tls(dice: random.Random, mesh: Mesh) -> None:
    if dice.random() < 0.9:
        return
    key, near = _key(dice), PlainText(ranges=(IpRange("10.0.0.0/8"),), matches=(dice.choice(NAMES),))
    accounts = dice.choice(((), (ServiceAccountName(dice.choice(NAMES)),)))
    ports, plain_text = dice.choice(((), (Port(8080),))), dice.choice((None, PlainText(), near))
    mutual_tls = MutualTLS(key, dice.choice(tuple(TlsMode)), accounts, ports, plain_text)
    _put(dice, mesh, ObjectKey.from_name(MUTUAL_TLS, key), mutual_tls)


def _authorization(dice: random.Random, mesh: Mesh) -> None:
    if dice.random() < 0.9:
        return
    key, asked = _key(dice), Authorizer(HostPort(dice.choice(("opa", "10.0.0.7")), 9191), "asked", A_SECOND)
    accounts = dice.choice(((), (ServiceAccountName(dice.choice(NAMES)),)))
    ports = dice.choice(((), (Port(8080),)))
    authorization = ExternalAuthorization(key, dice.choice((None, asked)), accounts, ports)
    _put(dice, mesh, ObjectKey.from_name(EXTERNAL_AUTHORIZATION, key), authorization)


def _gateway_route(dice: random.Random, mesh: Mesh) -> None:
    if dice.random() < 0.7:
        return
    key, route = gateway_route(dice, NAMES, NAMESPACES)
    assert isinstance(route, HTTPRoute | GRPCRoute | TLSRoute | GatewayTCPRoute)
    _put(dice, mesh, key, route)


A_SECOND = timedelta(seconds=1)
SETTINGS = (
    MeshSettings(),
    *[MeshSettings(endpoint_admission=EndpointAdmission.READY)] * 3,
    MeshSettings(trust_domain=TrustDomain("other.local")),
    MeshSettings(cluster_domain="mesh.example"),
    MeshSettings(virtual_addresses=IPv4Network("241.0.0.0/29")),
    MeshSettings(virtual_addresses=IPv4Network("241.0.0.0/30")),
)


def _put(dice: random.Random, mesh: Mesh, key: ObjectKey, value: MeshObject) -> None:
    if dice.random() < 0.25:
        mesh.objects.pop(key, None)
    else:
        mesh.objects[key] = SourcedObject(
            key, value, InFile("mesh.yaml", 1, dice.randint(1, 3)), dice.random() < 0.2
        )


def _put_beside(mesh: Mesh, key: ObjectKey, value: MeshObject) -> None:
    """Put an object that another object's text has determined, so that all other throws are unchanged."""
    _put(_thrown_by(value), mesh, key, value)


def _key(dice: random.Random) -> PolicyKey:
    return PolicyKey(dice.choice(NAMESPACES), dice.choice(NAMES))


def _identity(dice: random.Random) -> ServiceIdentity:
    return ServiceIdentity(dice.choice(NAMESPACES), ServiceAccountName(dice.choice(NAMES)))


def _service_key(dice: random.Random) -> ServiceKey:
    return ServiceKey(dice.choice(NAMESPACES), ServiceName(dice.choice(NAMES)))


def _service(dice: random.Random) -> tuple[ObjectKey, MeshObject]:
    key = _service_key(dice)
    ports = tuple(
        ServicePort(
            Port(number),
            dice.choice((Port(8080), Port(9090), "web")),
            dice.choice((Protocol.HTTP, Protocol.HTTP, Protocol.TCP)),
            dice.choice(("", "web")),
            dice.choice(("appProtocol", "default")),
        )
        for number in dice.sample((80, 81), dice.randint(1, 2))
    )
    selector = dice.choice(((), (("app", key.name),), (("app", dice.choice(NAMES)), ("tier", "x"))))
    address = dice.choice((None, None, IpAddress("10.96.0.1"), IpAddress("241.0.0.1")))
    service = Service(key, ports, selector, address, headless=address is None and dice.random() < 0.3)
    return ObjectKey.from_name(SERVICE, key), _service_in_a_cluster(service)


def _workload(dice: random.Random) -> Workload:
    key = WorkloadKey(dice.choice(NAMESPACES), dice.choice(NAMES) + dice.choice("12"))
    return Workload(
        key=key,
        identity=ServiceIdentity(key.namespace, ServiceAccountName(dice.choice(NAMES))),
        service=ServiceName(dice.choice(NAMES)),
        address=dice.choice(ADDRESSES),
        uuid=dice.choice((None, ProxyUuid(key.name), ProxyUuid(f"{key.namespace}-{key.name}"))),
        ports=dice.choice(
            ((), (WorkloadPort(Port(8080), "web"),), (WorkloadPort(Port(9090), "web", Protocol.TCP),))
        ),
        labels=(("app", dice.choice(NAMES)), ("tier", dice.choice("xy"))),
        interception=_interception(dice),
        weight=dice.choice((0, 1, 1, 2)),
        scope=dice.choice((None, None, None, _scope(dice))),
        locality=dice.choice(("", "r/z")),
    )


def _thrown_by(value: object) -> random.Random:
    """Return dice seeded by a value's own text, so that additional fields change no other throw."""
    return random.Random(zlib.crc32(repr(value).encode()))  # noqa: S311 - nothing secret


def _as_in_a_cluster(workload: Workload) -> Workload:
    """Return a workload like a Pod: ready or not, dual-stack or on the host network, named or not."""
    dice = _thrown_by(workload)
    return replace(
        workload,
        health=dice.choice((*[Health.READY] * 3, Health.DRAINING, Health.UNREADY)),
        other_addresses=dice.choice(((), (), (IpAddress("fd00::8"),))),
        shares_address=workload.uuid is None and dice.random() < 0.3,
        names_service=dice.random() < 0.5,
    )


def _sliced_in_a_cluster(endpoint_slice: EndpointSlice) -> EndpointSlice:
    """Return a slice with Kubernetes' conditions and zones, such as endpoints that are not ready."""
    dice = _thrown_by(endpoint_slice)
    others = tuple(item for item in ("10.0.0.1", "fd00::8") if item not in endpoint_slice.addresses)
    draining = others[: dice.randint(0, 1)]
    unready = others[len(draining) : len(draining) + dice.randint(0, 1)]
    zones = tuple((address, "z") for address in endpoint_slice.addresses if dice.random() < 0.3)
    return replace(endpoint_slice, draining=draining, unready=unready, zones=zones)


def _service_in_a_cluster(service: Service) -> Service:
    """Return a Service that may be dual-stack, or that publishes Pods that are not ready."""
    dice = _thrown_by(service)
    both = service.cluster_ip is not None and dice.random() < 0.5
    addresses = (IpAddress("fd00:96::1"),) if both else ()
    return replace(service, other_addresses=addresses, publish_not_ready=dice.random() < 0.2)


def _template(dice: random.Random) -> tuple[ObjectKey, MeshObject]:
    key = WorkloadKey(dice.choice(NAMESPACES), dice.choice(NAMES))
    return ObjectKey.from_name(DEPLOYMENT, key), PodTemplate(
        DEPLOYMENT,
        key,
        ServiceIdentity(key.namespace, ServiceAccountName(dice.choice(NAMES))),
        (("app", dice.choice(NAMES)), ("tier", dice.choice("xy"))),
        dice.choice(((), (WorkloadPort(Port(8080), "web"),))),
    )


def _scope(dice: random.Random) -> Scope:
    patterns = [
        ServicePattern(dice.choice((None, *NAMESPACES)), dice.choice((None, *map(ServiceName, NAMES))))
    ]
    return dice.choice((None, tuple(patterns), tuple(patterns), ()))


def _namespace(dice: random.Random) -> tuple[ObjectKey, MeshObject]:
    name = dice.choice(NAMESPACES)
    answer = dice.choice((None, True, True, False))
    annotations = () if answer is None else ((PERMISSIVE, "true" if answer else "false"),)
    namespace = NamespaceObject(name, (), annotations, answer, _scope(dice))
    return ObjectKey.of_namespace(name), namespace


def _admission(dice: random.Random, mesh: Mesh) -> None:
    """Admit a proxy or withdraw its admission; sometimes the proxy does not exist."""
    names = [
        proxy_name for workload in mesh.workloads.values() if (proxy_name := workload.proxy_name) is not None
    ]
    stranger = ProxyName(ProxyUuid("b1"), ServiceName("b"), Namespace("one"))
    name = dice.choice([*sorted(names), stranger])
    if dice.random() >= 0.3:
        mesh.admissions[name] = Admission.ADMITTED
    elif mesh.admissions.pop(name, None) is Admission.ADMITTED:
        mesh.admissions[name] = Admission.WITHDRAWN


def _interception(dice: random.Random) -> Interception:
    thrown = dice.random()
    if thrown < 0.5:
        return Transparent(Capture.TPROXY if thrown < 0.1 else Capture.REDIRECT, ipv6=0.05 < thrown < 0.2)
    local = (IpAddress("127.0.0.1"), IpAddress("0.0.0.0"), IpAddress("10.0.0.1"))
    upstreams = tuple(
        Upstream(_service_key(dice), dice.choice((Port(80), Port(81))), dice.choice(local), Port(8080))
        for _ in range(dice.randint(0, 2))
    )
    return Explicit(dice.choice((None, IpAddress("127.0.0.1"))), upstreams)


def _rules(dice: random.Random) -> Iterator[Rule]:
    for _ in range(dice.randint(0, 2)):
        kind = dice.choice(tuple(RouteKind))
        matches = (dice.choice(NAMES),) if kind is RouteKind.HTTP and dice.random() < 0.3 else ()
        yield Rule(kind, dice.choice(NAMES), matches)


def _target(dice: random.Random) -> tuple[ObjectKey, MeshObject]:
    key = PolicyKey(dice.choice(NAMESPACES), dice.choice("defgh"))
    namespace = key.namespace if dice.random() < 0.9 else dice.choice(NAMESPACES)
    destination = ServiceIdentity(namespace, ServiceAccountName(dice.choice(NAMES)))
    sources = tuple(_identity(dice) for _ in range(dice.randint(0, 2)))
    port = dice.choice((None, None, Port(8080)))
    return ObjectKey.from_name(TRAFFIC_TARGET, key), TrafficTarget(
        key, destination, sources, tuple(_rules(dice)), port
    )


def _egress(target: TrafficTarget) -> tuple[ObjectKey, MeshObject]:
    """Return an Egress for a target's sources; its hosts and ranges are sometimes the mesh's own."""
    dice = _thrown_by(target)
    protocols = tuple(EgressProtocol)
    egress = Egress(
        target.key,
        tuple(sorted({*target.sources, _identity(dice)})),
        tuple(sorted({EgressPort(Port(dice.choice((80, 81, 443))), dice.choice(protocols)) for _ in "12"})),
        hosts=tuple(sorted(dice.sample(("x.test", "*.x.test", "b.one", "10.96.0.1"), dice.randint(0, 2)))),
        networks=dice.choice(((), (), ("10.96.0.1/32",), ("10.0.0.0/8", "10.96.0.0/16"), ("fd00::/8",))),
        route_groups=dice.choice(((), (), (dice.choice(NAMES),))),
        limits=dice.choice((None, dice.choice(NAMES))),
    )
    return ObjectKey.from_name(EGRESS, target.key), egress


def _ingress(service: Service) -> tuple[ObjectKey, MeshObject]:
    """Return an IngressBackend that opens a service and another one to the endpoints of a third."""
    dice = _thrown_by(service)
    named = (service.key, ServiceKey(service.key.namespace, ServiceName(dice.choice(NAMES))))
    key = PolicyKey(service.key.namespace, dice.choice(NAMES))
    ingress_backend = IngressBackend(
        key,
        tuple(
            sorted(
                IngressPort(service_key, Port(dice.choice((8080, 9090))), dice.choice(tuple(Proof)))
                for service_key in dict.fromkeys(named)
            )
        ),
        services=(ServiceKey(dice.choice(NAMESPACES), ServiceName(dice.choice(NAMES))),),
        ranges=dice.choice(((), (), (IpRange("10.0.0.0/8"), IpRange("fd00::/8")))),
        principals=("gateway.example.org",),
        matches=dice.choice(((), (), (dice.choice(NAMES),))),
        created=dice.choice(("", "2026-01-01T00:00:00Z")),
    )
    return ObjectKey.from_name(INGRESS_BACKEND, key), ingress_backend


def _group(dice: random.Random) -> tuple[ObjectKey, MeshObject]:
    key = _key(dice)
    matches = tuple(
        HTTPMatch(name, dice.choice((None, "/x", "/y")), dice.choice(((), ("GET",))))
        for name in dice.sample(sorted(set(NAMES)), dice.randint(0, 2))
    )
    return ObjectKey.from_name(HTTP_ROUTE_GROUP, key), HTTPRouteGroup(key, matches)


def _tcp(dice: random.Random) -> tuple[ObjectKey, MeshObject]:
    key = _key(dice)
    ports = dice.choice(((), (Port(8080),), (Port(9090),)))
    return ObjectKey.from_name(TCP_ROUTE, key), TCPRoute(key, ports)


def _split(dice: random.Random) -> tuple[ObjectKey, MeshObject]:
    key = _key(dice)
    backends = tuple(
        Backend(ServiceName(dice.choice(NAMES)), dice.choice((0, 1, 2))) for _ in range(dice.randint(1, 2))
    )
    apex = ServiceKey(key.namespace, ServiceName(dice.choice(NAMES)))
    matches = (dice.choice(NAMES),) if dice.random() < 0.3 else ()
    split = TrafficSplit(key, apex, backends, matches, dice.choice(("", "2026-01-01T00:00:00Z")))
    return ObjectKey.from_name(TRAFFIC_SPLIT, key), split


def _slice(dice: random.Random, mesh: Mesh) -> None:
    if mesh.slices and dice.random() < 0.5:
        del mesh.slices[dice.choice(sorted(mesh.slices))]
        return
    addresses = tuple(dice.sample(("10.0.0.1", "10.0.0.2", "10.9.9.9"), dice.randint(0, 2)))
    service, namespace = dice.choice(NAMES), dice.choice(NAMESPACES)
    name = "-".join((service, *addresses))
    endpoint_slice = _sliced_in_a_cluster(
        EndpointSlice(service, namespace, name, addresses, (("web", 8080),))
    )
    mesh.slices[endpoint_slice] = endpoint_slice


def _config(dice: random.Random) -> tuple[ObjectKey, MeshObject]:
    key = ObjectKey(MESH_CONFIG, NAMESPACES[0], dice.choice(("osm-mesh-config", "another")))
    return key, MeshConfig(
        permissive=dice.random() < 0.15,
        egress=dice.random() < 0.5,
        service_certificate_validity=timedelta(hours=dice.choice((1, 2))),
        sidecar=SidecarSettings(tls_min_version=dice.choice(tuple(TlsVersion))),
    )


def _certificate(dice: random.Random, mesh: Mesh) -> None:
    if dice.random() < 0.2:
        mesh.roots = dice.choice(ROOTS)
        return
    identity = _identity(dice)
    if dice.random() < 0.2:
        mesh.certificates.pop(identity, None)
        return
    mesh.certificates[identity] = a.certificate(identity, dice.choice("12"))


def random_mesh(dice: random.Random) -> Mesh:
    """Return a mesh with certificates for most identities and a few dozen objects."""
    mesh = Mesh(settings=dice.choice(SETTINGS[:4]))
    for namespace in NAMESPACES:
        for name in NAMES:
            identity = ServiceIdentity(namespace, ServiceAccountName(name))
            mesh.certificates[identity] = a.certificate(identity, "0")
    for _ in range(40):
        changed(dice, mesh)
    return mesh


def with_template(dice: random.Random, mesh: Mesh) -> None:
    """Change a pod template, which affects no served configuration."""
    _put(dice, mesh, *_template(dice))
