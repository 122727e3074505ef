"""Routes of the Gateway API and ReferenceGrants in a view, with their indexes.

Routes of all kinds have one form, so readers look them up by their object keys, whatever the kind. Of the
parents and backends only Services count here: a route may name other objects, for example a Gateway.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from catalog.store.view import IN_VIEW, View, kind
from meshwright.engine.declarations import DeclaredPart
from meshwright.engine.index import Index
from meshwright.engine.table import Table
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
from meshwright.mesh.kinds import (
    GATEWAY_TCP_ROUTE,
    GRPC_ROUTE,
    HTTP_ROUTE,
    REFERENCE_GRANT,
    SERVICE,
    TLS_ROUTE,
    Kind,
)
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey

ByService = DeclaredPart[View, Index[ServiceKey, PolicyKey, GatewayRoute]]


@dataclass(frozen=True, slots=True)
class RouteTable:
    """The routes of one kind, with their indexes by parent Service, by backend Service and by namespace."""

    kind: Kind
    routes: DeclaredPart[View, Table[PolicyKey, GatewayRoute]]
    by_parent: ByService
    by_backend: ByService
    by_namespace: DeclaredPart[View, Index[Namespace, PolicyKey, GatewayRoute]]


def parent_service(route: GatewayRoute, parent: ParentRef) -> ServiceKey | None:
    """Return the key of a Service as parent; None for another kind of object."""
    if parent.kind != SERVICE:
        return None
    return ServiceKey(parent.namespace or route.key.namespace, ServiceName(parent.name))


def backend_service(backend: BackendObject) -> ServiceKey | None:
    """Return the key of a Service as backend; None for another kind of object."""
    return ServiceKey(backend.namespace, ServiceName(backend.name)) if backend.kind == SERVICE else None


def backends_of(rule: Rule) -> Iterator[BackendObject]:
    """Yield the objects behind a rule, for requests and copies."""
    yield from (mirror.backend for mirror in rule.filters.mirrors)
    for backend in rule.backends:
        yield backend.to
        yield from (mirror.backend for mirror in backend.filters.mirrors)


def _parents(_: PolicyKey, route: GatewayRoute) -> tuple[ServiceKey, ...]:
    named = (parent_service(route, parent) for parent in route.parents)
    return tuple(dict.fromkeys(key for key in named if key is not None))


def _backends(_: PolicyKey, route: GatewayRoute) -> tuple[ServiceKey, ...]:
    named = (backend_service(backend) for rule in route.rules for backend in backends_of(rule))
    return tuple(dict.fromkeys(key for key in named if key is not None))


def _declared(value: type[GatewayRoute], route_kind: Kind, plural: str) -> RouteTable:
    routes: DeclaredPart[View, Table[PolicyKey, GatewayRoute]] = kind(value, route_kind, plural, _key)
    return RouteTable(
        route_kind,
        routes,
        IN_VIEW.index(f"{plural} by parent", routes, _parents),
        IN_VIEW.index(f"{plural} by backend", routes, _backends),
        IN_VIEW.index(f"{plural} by namespace", routes, lambda key, _: (key.namespace,)),
    )


def _key(route: GatewayRoute) -> PolicyKey:
    return route.key


ROUTE_TABLES: Final = (
    _declared(GRPCRoute, GRPC_ROUTE, "GRPCRoutes"),
    _declared(HTTPRoute, HTTP_ROUTE, "HTTPRoutes"),
    _declared(TLSRoute, TLS_ROUTE, "TLSRoutes"),
    _declared(TCPRoute, GATEWAY_TCP_ROUTE, "TCPRoutes of the Gateway API"),
)
"""The kinds of routes; on one port of a Service an earlier kind precedes a later one."""

reference_grants: Final = kind(ReferenceGrant, REFERENCE_GRANT, "ReferenceGrants", lambda grant: grant.key)
"""Grants for gateways; in a mesh backends of other namespaces need none."""

_TABLES: Final = {table.kind: table for table in ROUTE_TABLES}
ROUTE_KINDS: Final = tuple(_TABLES)
"""The kinds of routes, in the order of ROUTE_TABLES."""


def route_of(view: View, key: ObjectKey) -> GatewayRoute | None:
    """Return the route with an object key, or None; also None for an object of another kind."""
    table = _TABLES.get(key.kind)
    return None if table is None else table.routes(view).get(PolicyKey(key.namespace, key.name))


def routes_by_parent(view: View, key: ServiceKey) -> Iterator[ObjectKey]:
    """Yield the routes with a Service as parent, by kind in the order of ROUTE_TABLES, then by key."""
    return _found(lambda table: table.by_parent(view).get(key, ()))


def routes_by_backend(view: View, key: ServiceKey) -> Iterator[ObjectKey]:
    """Yield the routes with a Service as backend or mirror, in the order of `routes_by_parent`."""
    return _found(lambda table: table.by_backend(view).get(key, ()))


def routes_in(view: View, namespace: Namespace) -> Iterator[ObjectKey]:
    """Yield the routes of a namespace, in the order of `routes_by_parent`."""
    return _found(lambda table: table.by_namespace(view).get(namespace, ()))


def all_routes(view: View) -> Iterator[ObjectKey]:
    """Yield all routes, in the order of `routes_by_parent`."""
    return _found(lambda table: tuple(table.routes(view)))


def _found(keys_in: Callable[[RouteTable], tuple[PolicyKey, ...]]) -> Iterator[ObjectKey]:
    for table in ROUTE_TABLES:
        yield from (ObjectKey.from_name(table.kind, key) for key in keys_in(table))
