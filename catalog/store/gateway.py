"""Gateways, ListenerSets, routes and ReferenceGrants of the Gateway API in a view, with their indexes.

Routes of all kinds have one form, so they are in one table, by their object keys. Of the parents and backends
only Services count here: a route may name other objects, for example a Gateway.
"""

from collections.abc import Iterator
from typing import Final

from catalog.store.view import IN_VIEW, View, kind, kinds, workloads
from meshwright.engine.declarations import DeclaredPart
from meshwright.engine.table import Table
from meshwright.mesh.gateway.backend_tls import BackendTLSPolicy
from meshwright.mesh.gateway.ca_bundles import CaBundle
from meshwright.mesh.gateway.gateways import Gateway, GatewayClass, ListenerSet
from meshwright.mesh.gateway.references import BackendObject, ParentRef
from meshwright.mesh.gateway.routes import (
    GatewayRoute,
    GRPCRoute,
    HTTPRoute,
    ReferenceGrant,
    TCPRoute,
    TLSRoute,
)
from meshwright.mesh.gateway.rules import Rule
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
)
from meshwright.mesh.names import ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import Edge, Workload, WorkloadKey

ROUTE_KINDS: Final = (GRPC_ROUTE, HTTP_ROUTE, TLS_ROUTE, GATEWAY_TCP_ROUTE)
"""The kinds of routes; on one port of a Service an earlier kind precedes a later one."""

gateway_routes: Final[DeclaredPart[View, Table[ObjectKey, GatewayRoute]]] = kinds(
    (GRPCRoute, HTTPRoute, TLSRoute, TCPRoute), HTTP_ROUTE, "Gateway API routes"
)
reference_grants: Final = kind(ReferenceGrant, REFERENCE_GRANT, "ReferenceGrants", lambda grant: grant.key)
"""Grants for references of gateways and of their routes; in a mesh backends need none."""
gateways: Final = kind(Gateway, GATEWAY, "Gateways", lambda gateway: gateway.key)
gateway_classes: Final = kind(
    GatewayClass, GATEWAY_CLASS, "GatewayClasses", lambda gateway_class: gateway_class.name
)
listener_sets: Final = kind(ListenerSet, LISTENER_SET, "ListenerSets", lambda found: found.key)
backend_tls_policies: Final = kind(
    BackendTLSPolicy, BACKEND_TLS_POLICY, "BackendTLSPolicies", lambda policy: policy.key
)
tls_secrets: Final = kind(TlsSecret, SECRET, "Secrets with certificates", lambda secret: secret.key)
"""Secrets, whose keys are hidden from everything that prints; only those named by a gateway matter."""
ca_bundles: Final = kind(CaBundle, CONFIG_MAP, "ConfigMaps with CA certificates", lambda bundle: bundle.key)


def parent_service(route: GatewayRoute, parent: ParentRef) -> ServiceKey | None:
    """Return the key of a Service as parent; None for another kind of object."""
    if parent.kind != SERVICE:
        return None
    return ServiceKey(parent.namespace or route.key.namespace, ServiceName(parent.name))


def parent_gateway(route: GatewayRoute, parent: ParentRef) -> PolicyKey | None:
    """Return the key of a gateway as parent; None for another kind of object."""
    if parent.kind != GATEWAY:
        return None
    return PolicyKey(parent.namespace or route.key.namespace, parent.name)


def parent_set(route: GatewayRoute, parent: ParentRef) -> PolicyKey | None:
    """Return the key of a ListenerSet as parent; None for another kind of object."""
    if parent.kind != LISTENER_SET:
        return None
    return PolicyKey(parent.namespace or route.key.namespace, parent.name)


def backend_service(backend: BackendObject) -> ServiceKey | None:
    """Return the key of a Service as backend; None for another kind of object."""
    return ServiceKey(backend.namespace, ServiceName(backend.name)) if backend.kind == SERVICE else None


def backends_of(rule: Rule) -> Iterator[BackendObject]:
    """Yield the objects behind a rule, for requests and copies."""
    yield from (mirror.backend for mirror in rule.filters.mirrors)
    for backend in rule.backends:
        yield backend.to
        yield from (mirror.backend for mirror in backend.filters.mirrors)


def backends_named(route: GatewayRoute) -> tuple[ServiceKey, ...]:
    """Return the keys of the Services among the backends of a route, those for copies included."""
    named = (backend_service(backend) for rule in route.rules for backend in backends_of(rule))
    return tuple(dict.fromkeys(key for key in named if key is not None))


def _parents(_: ObjectKey, route: GatewayRoute) -> tuple[ServiceKey, ...]:
    named = (parent_service(route, parent) for parent in route.parents)
    return tuple(dict.fromkeys(key for key in named if key is not None))


def _gateways(_: ObjectKey, route: GatewayRoute) -> tuple[PolicyKey, ...]:
    named = (parent_gateway(route, parent) for parent in route.parents)
    return tuple(dict.fromkeys(key for key in named if key is not None))


def _sets(_: ObjectKey, route: GatewayRoute) -> tuple[PolicyKey, ...]:
    named = (parent_set(route, parent) for parent in route.parents)
    return tuple(dict.fromkeys(key for key in named if key is not None))


def _gateway(_: PolicyKey, found: ListenerSet) -> tuple[PolicyKey, ...]:
    return () if found.gateway is None else (found.gateway,)


def _served(key: WorkloadKey, workload: Workload) -> tuple[PolicyKey, ...]:
    edge = workload.interception
    return (PolicyKey(key.namespace, edge.gateway),) if isinstance(edge, Edge) else ()


routes_by_parent: Final = IN_VIEW.index("Gateway API routes by parent", gateway_routes, _parents)
routes_by_gateway: Final = IN_VIEW.index("Gateway API routes by gateway", gateway_routes, _gateways)
routes_by_set: Final = IN_VIEW.index("Gateway API routes by ListenerSet", gateway_routes, _sets)
sets_by_gateway: Final = IN_VIEW.index("ListenerSets by gateway", listener_sets, _gateway)
"""ListenerSets by the gateway that they name; the gateway may be missing, or allow none."""
routes_by_backend: Final = IN_VIEW.index(
    "Gateway API routes by backend", gateway_routes, lambda _, route: backends_named(route)
)
"""Routes by the Services among their backends, those for copies included; the Service may be missing."""
backend_policies_by_service: Final = IN_VIEW.index(
    "BackendTLSPolicies by Service", backend_tls_policies, lambda _, policy: policy.services
)
routes_by_namespace: Final = IN_VIEW.index(
    "Gateway API routes by namespace", gateway_routes, lambda key, _: (key.namespace,)
)

grants_by_namespace: Final = IN_VIEW.index(
    "ReferenceGrants by namespace", reference_grants, lambda key, _: (key.namespace,)
)
workloads_by_gateway: Final = IN_VIEW.index("workloads by gateway", workloads, _served)
"""Workloads by the gateway that they serve; the gateway may be missing."""


def route_of(view: View, key: ObjectKey) -> GatewayRoute | None:
    """Return the route with an object key, or None; also None for an object of another kind."""
    return gateway_routes(view).get(key) if key.kind in ROUTE_KINDS else None
