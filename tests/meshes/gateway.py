"""Short constructors of Gateway API routes for the catalog's tests; the namespace is `default` by default."""

from dataclasses import replace
from typing import Any

import catalog.store.gateway
import catalog.store.own_policies  # noqa: F401 - declares the objects that a view may be made of
from catalog.store.view import MeshSettings, View
from meshwright.mesh.gateway.backend_tls import AltName, BackendTLSPolicy, PolicyTarget
from meshwright.mesh.gateway.ca_bundles import CaBundle
from meshwright.mesh.gateway.filters import Filters
from meshwright.mesh.gateway.gateways import (
    CONTROLLER_NAME,
    AllowedRoutes,
    AllowedSets,
    ClientValidation,
    FrontendTls,
    Gateway,
    GatewayClass,
    Listener,
    ListenerSet,
    ListenerTls,
    ObjectReference,
    RoutesFrom,
    TlsMode,
    ValidationMode,
)
from meshwright.mesh.gateway.references import BackendObject, ParentRef
from meshwright.mesh.gateway.routes import (
    GatewayRoute,
    GRPCRoute,
    HTTPRoute,
    ReferenceGrant,
    TCPRoute,
    TLSRoute,
)
from meshwright.mesh.gateway.rules import Backend, Rule
from meshwright.mesh.gateway.secrets import TlsSecret
from meshwright.mesh.kinds import (
    BACKEND_TLS_POLICY,
    CONFIG_MAP,
    GATEWAY,
    GATEWAY_CLASS,
    GATEWAY_TCP_ROUTE,
    GRPC_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    REFERENCE_GRANT,
    SECRET,
    SERVICE,
    TLS_ROUTE,
    Kind,
)
from meshwright.mesh.matching import Exact, FieldMatch, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.client_traffic import (
    PORT_DEFAULTS,
    ClientSettings,
    ClientTarget,
    ClientTrafficPolicy,
    PortSettings,
)
from meshwright.mesh.values.private_key import PrivateKey
from tests.meshes import values as a

CLASS = GatewayClass("meshwright", CONTROLLER_NAME)
FOREIGN_CLASS = GatewayClass("other", "example.com/controller")

KINDS = {HTTPRoute: HTTP_ROUTE, GRPCRoute: GRPC_ROUTE, TLSRoute: TLS_ROUTE, TCPRoute: GATEWAY_TCP_ROUTE}
NO_FILTERS = Filters()
_OURS = (
    HTTPRoute
    | GRPCRoute
    | TLSRoute
    | TCPRoute
    | Gateway
    | GatewayClass
    | ListenerSet
    | ReferenceGrant
    | TlsSecret
    | CaBundle
    | BackendTLSPolicy
)


def parent(
    name: str,
    *,
    namespace: str | None = None,
    port: int | None = None,
    section: str | None = None,
    kind: Kind = SERVICE,
) -> ParentRef:
    """Make a reference to a parent, by default a Service."""
    return ParentRef(
        kind, name, Namespace(namespace) if namespace else None, section, None if port is None else Port(port)
    )


def to(
    name: str,
    port: int | None = 80,
    *,
    weight: int = 1,
    namespace: str = "default",
    kind: Kind = SERVICE,
    filters: Filters = NO_FILTERS,
) -> Backend:
    """Make a backend, by default a Service."""
    number = None if port is None else Port(port)
    return Backend(BackendObject(kind, Namespace(namespace), name, number), weight, filters)


def prefix(path: str, *headers: tuple[str, str], **fields: tuple[str, ...]) -> RequestMatch:
    """Make a match by path prefix, exact headers, and the other fields of a match."""
    return RequestMatch(Prefix(path), headers=_fields(*headers), **fields)  # type: ignore[arg-type]


def exact(path: str, *headers: tuple[str, str]) -> RequestMatch:
    """Make a match by exact path and exact headers."""
    return RequestMatch(Exact(path), headers=_fields(*headers))


def regex(path: str, *headers: tuple[str, str]) -> RequestMatch:
    """Make a match by a regular expression and exact headers."""
    return RequestMatch(Regex(path), headers=_fields(*headers))


def call(service: str | None = None, method: str | None = None, *headers: tuple[str, str]) -> RequestMatch:
    """Make a match of gRPC calls."""
    path = GrpcMethod(service, method) if service or method else None
    return RequestMatch(path, headers=_fields(*headers), grpc=True)


def http_route(
    name: str,
    *rules: Rule,
    parents: tuple[ParentRef, ...],
    namespace: str = "default",
    created: str = "",
    hostnames: tuple[str, ...] = (),
) -> HTTPRoute:
    """Make an HTTPRoute."""
    return HTTPRoute(a.policy_key(name, namespace), parents, hostnames, rules, created=created)


def grpc_route(
    name: str, *rules: Rule, parents: tuple[ParentRef, ...], namespace: str = "default", created: str = ""
) -> GRPCRoute:
    """Make a GRPCRoute."""
    return GRPCRoute(a.policy_key(name, namespace), parents, (), rules, created=created)


def listener(
    name: str = "http", port: int = 80, hostname: str = "", protocol: str = "HTTP", **fields: Any
) -> Listener:
    """Make a listener; `fields` are further ones of `allowedRoutes`."""
    return Listener(name, Port(port), protocol, hostname, allowed=AllowedRoutes(**fields))


def passthrough(name: str = "tls", port: int = 443, hostname: str = "", **fields: Any) -> Listener:
    """Make a listener that passes TLS on; `fields` are further ones of `allowedRoutes`."""
    passed = ListenerTls(TlsMode.PASSTHROUGH)
    return replace(listener(name, port, hostname, "TLS", **fields), tls=passed)


def https(
    name: str = "https",
    hostname: str = "",
    *secrets: str,
    protocol: str = "HTTPS",
    namespace: str | None = None,
    **fields: Any,
) -> Listener:
    """Make a listener at port 443 that ends TLS, by default with the Secret `cert`."""
    where = None if namespace is None else Namespace(namespace)
    shown = tuple(ObjectReference(SECRET, secret, where) for secret in secrets or ("cert",))
    return replace(listener(name, 443, hostname, protocol, **fields), tls=ListenerTls(certificates=shown))


def reference(to: Listener, kind: Kind, name: str) -> Listener:
    """Return a listener with another reference in place of its certificates."""
    return replace(to, tls=ListenerTls(certificates=(ObjectReference(kind, name),)))


def tls_secret(name: str = "cert", *, namespace: str = "default", fault: str = "") -> TlsSecret:
    """Make a Secret with placeholders for its content, or one with a fault."""
    key = a.policy_key(name, namespace)
    return TlsSecret(key, fault=fault) if fault else TlsSecret(key, b"[chain]", PrivateKey(b"[key]"))


def ca_bundle(name: str = "ca", *, namespace: str = "default", fault: str = "") -> CaBundle:
    """Make a ConfigMap with a placeholder for its CA certificates, or one with a fault."""
    key = a.policy_key(name, namespace)
    return CaBundle(key, fault=fault) if fault else CaBundle(key, f"[{name}]")


def backend_policy(
    name: str = "tls",
    *targets: str,
    authorities: tuple[str, ...] = ("ca",),
    well_known: str = "",
    names: tuple[AltName, ...] = (),
    namespace: str = "default",
    created: str = "",
) -> BackendTLSPolicy:
    """Make a BackendTLSPolicy for `web.example`; a target is `<service>` or `<service>/<port name>`."""
    split = (target.partition("/") for target in targets or ("web",))
    return BackendTLSPolicy(
        a.policy_key(name, namespace),
        tuple(PolicyTarget(SERVICE, service, section or None) for service, _, section in split),
        "web.example",
        () if well_known else tuple(ObjectReference(CONFIG_MAP, item) for item in authorities),
        well_known,
        names,
        created=created,
    )


def gateway(
    name: str, *listeners: Listener, namespace: str = "default", class_name: str = "meshwright"
) -> Gateway:
    """Make a gateway, by default of our class, with one HTTP listener."""
    return Gateway(a.policy_key(name, namespace), class_name, listeners or (listener(),))


def with_client_certificate(
    gateway: Gateway, name: str = "client", *, kind: Kind = SECRET, namespace: str | None = None
) -> Gateway:
    """Return a gateway that shows a certificate to backends with TLS."""
    shown = ObjectReference(kind, name, None if namespace is None else Namespace(namespace))
    return replace(gateway, tls=replace(gateway.tls, client_certificate=shown))


def validation(
    *names: str,
    mode: ValidationMode = ValidationMode.VALID_ONLY,
    kind: Kind = CONFIG_MAP,
    namespace: str | None = None,
) -> ClientValidation:
    """Make a validation of clients by ConfigMaps, by default `ca`."""
    where = None if namespace is None else Namespace(namespace)
    return ClientValidation(tuple(ObjectReference(kind, name, where) for name in names or ("ca",)), mode)


def with_validation(
    gateway: Gateway, default: ClientValidation | None, **by_port: ClientValidation | None
) -> Gateway:
    """Return a gateway that validates clients; the names of single ports are like `at_443`."""
    ports = tuple((Port(int(name.removeprefix("at_"))), found) for name, found in by_port.items())
    return replace(gateway, tls=replace(gateway.tls, frontend=FrontendTls(default, ports)))


def open_gateway(
    name: str, *listeners: Listener, namespace: str = "default", sets: RoutesFrom = RoutesFrom.ALL
) -> Gateway:
    """Make a gateway that allows ListenerSets, by default of all namespaces."""
    return replace(gateway(name, *listeners, namespace=namespace), allowed_sets=AllowedSets(sets))


def listener_set(
    name: str,
    *listeners: Listener,
    gateway: str = "edge",
    at: str | None = None,
    namespace: str = "default",
    created: str = "",
) -> ListenerSet:
    """Make a ListenerSet for a gateway of the namespace `at`, by default the set's own."""
    parent = ObjectReference(GATEWAY, gateway, None if at is None else Namespace(at))
    return ListenerSet(a.policy_key(name, namespace), parent, listeners or (listener(),), created=created)


def client_policy(
    name: str, *targets: ClientTarget, created: str = "", port: PortSettings = PORT_DEFAULTS, **fields: Any
) -> ClientTrafficPolicy:
    """Make a ClientTrafficPolicy, by default for gateway `edge`; `fields` are those of its settings."""
    key, settings = a.policy_key(name), ClientSettings(**fields)
    return ClientTrafficPolicy(key, targets or (ClientTarget("edge"),), settings, port, created=created)


def at_set(name: str, section: str | None = None, *, namespace: str | None = None) -> ParentRef:
    """Make a reference to a ListenerSet as parent."""
    return parent(name, namespace=namespace, section=section, kind=LISTENER_SET)


def at(
    name: str, section: str | None = None, *, namespace: str | None = None, port: int | None = None
) -> ParentRef:
    """Make a reference to a gateway as parent."""
    return parent(name, namespace=namespace, port=port, section=section, kind=GATEWAY)


def tcp_route(
    name: str, *rules: Rule, parents: tuple[ParentRef, ...], namespace: str = "default", created: str = ""
) -> TCPRoute:
    """Make a TCPRoute of the Gateway API."""
    return TCPRoute(a.policy_key(name, namespace), parents, (), rules, created=created)


def tls_route(
    name: str,
    *rules: Rule,
    parents: tuple[ParentRef, ...],
    namespace: str = "default",
    created: str = "",
    hostnames: tuple[str, ...] = (),
) -> TLSRoute:
    """Make a TLSRoute."""
    return TLSRoute(a.policy_key(name, namespace), parents, hostnames, rules, created=created)


def key_of(
    thing: GatewayRoute
    | Gateway
    | GatewayClass
    | ListenerSet
    | ReferenceGrant
    | TlsSecret
    | CaBundle
    | BackendTLSPolicy,
) -> ObjectKey:
    """Return the object key of a route, gateway, class, set, grant, Secret, ConfigMap or policy."""
    match thing:
        case CaBundle(key):
            return ObjectKey.from_name(CONFIG_MAP, key)
        case BackendTLSPolicy(key):
            return ObjectKey.from_name(BACKEND_TLS_POLICY, key)
        case TlsSecret(key):
            return ObjectKey.from_name(SECRET, key)
        case ReferenceGrant(key):
            return ObjectKey.from_name(REFERENCE_GRANT, key)
        case ListenerSet(key):
            return ObjectKey.from_name(LISTENER_SET, key)
        case Gateway(key):
            return ObjectKey.from_name(GATEWAY, key)
        case GatewayClass(name):
            return ObjectKey(GATEWAY_CLASS, Namespace(""), name)
        case _:
            return ObjectKey.from_name(KINDS[type(thing)], thing.key)


def view(*things: object, settings: MeshSettings | None = None) -> View:
    """Make a view of objects, routes and gateways of the Gateway API among them."""
    routes = [thing for thing in things if isinstance(thing, _OURS)]
    others = [thing for thing in things if not isinstance(thing, _OURS)]
    sourced = {
        key_of(route): SourcedObject(key_of(route), route, InFile("routes", 1, number))
        for number, route in enumerate(routes, 1)
    }
    return View.build({**a.objects(*others), **sourced}, settings or MeshSettings())


def _fields(*pairs: tuple[str, str]) -> tuple[FieldMatch, ...]:
    return tuple(FieldMatch(name, Exact(value)) for name, value in pairs)
