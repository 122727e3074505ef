"""Reach of attached routes: whose calls to a Service they decide, and to which places the calls may lead.

Most callers of a Service are decided by its producer routes. Callers in a namespace with consumer routes for
the Service are another side: at each port the consumer routes replace the producer routes. A side is the
namespace, or None for all other callers, who share one result.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from catalog.relations.attachment import consumer_namespaces, parent_verdicts, routes_at
from catalog.relations.permissive import is_permissive
from catalog.relations.references import resolved_rules
from catalog.relations.verdicts import ResolvedRule, ServicePlace
from catalog.store.gateway import backends_named, route_of, routes_by_namespace, routes_by_parent
from catalog.store.view import IN_VIEW, View, services
from meshwright.engine.derived import derived
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.service import ServiceKey, ServicePort

Side = Namespace | None


def attached_routes(view: View, key: ServiceKey) -> tuple[ObjectKey, ...]:
    """Return all routes in force at any port of a Service, of producers and consumers; mostly none."""
    # Nearly every Service has no routes, and then nothing is kept for it.
    return _attached(view, key) if key in routes_by_parent(view) else ()


@derived
def _attached(view: View, key: ServiceKey) -> tuple[ObjectKey, ...]:
    return tuple(route for route in routes_by_parent(view).get(key, ()) if key in attached_to(view, route))


@derived
def attached_to(view: View, route: ObjectKey) -> tuple[ServiceKey, ...]:
    """Return the Services at which a route is in force, in the order of the parents."""
    return tuple(
        dict.fromkeys(verdict.service for verdict in parent_verdicts(view, route) if verdict.accepted)
    )


def side_of(view: View, key: ServiceKey, namespace: Namespace) -> Side:
    """Return the side of the callers in a namespace for calls to a Service."""
    if not attached_routes(view, key) or namespace not in consumer_namespaces(view, key):
        return None
    return namespace


def deciding_routes(view: View, key: ServiceKey, port: Port, side: Side) -> tuple[ObjectKey, ...]:
    """Return the routes in force at a Service's port for the calls of a side; mostly none."""
    if not attached_routes(view, key):
        return ()
    consumers = () if side is None else routes_at(view, key, port, side)
    return consumers or routes_at(view, key, port, key.namespace)


@derived
def route_places(
    view: View, key: ServiceKey, port: ServicePort, side: Side
) -> tuple[tuple[ServiceKey, ServicePort], ...]:
    """Return the places to which routes lead the calls of a side to a Service's port, with copies."""
    found = (
        place
        for route in deciding_routes(view, key, port.port, side)
        for rule in resolved_rules(view, route)
        for place in places_of(rule)
    )
    return tuple(dict.fromkeys((place.service, place.port) for place in found))


@derived
def redirects(view: View, key: ServiceKey, port: Port, side: Side) -> bool:
    """Return whether a route redirects calls of a side to a Service's port, so that no workload is called."""
    routes = (route_of(view, route) for route in deciding_routes(view, key, port, side))
    return any(
        rule.filters.redirect is not None and not rule.dropped
        for route in routes
        if route is not None
        for rule in route.rules
    )


def places_of(rule: ResolvedRule) -> Iterator[ServicePlace]:
    """Yield the places of a rule for requests and copies, possibly repeated."""
    references = (
        *(item for backend in rule.backends for item in (backend.to, *backend.mirrors)),
        *rule.mirrors,
    )
    yield from (item for item in references if isinstance(item, ServicePlace))


def namespaces_behind(view: View, key: ServiceKey, side: Side) -> tuple[Namespace, ...]:
    """Return the namespaces of the places behind calls: the Service's own, and places of routes."""
    if not attached_routes(view, key):
        return (key.namespace,)
    return _namespaces_of_routes(view, key, side)


@derived
def _namespaces_of_routes(view: View, key: ServiceKey, side: Side) -> tuple[Namespace, ...]:
    places = (place for port in view.services[key].ports for place in route_places(view, key, port, side))
    return tuple(sorted({key.namespace, *(service.namespace for service, _ in places)}))


def relevant_caller(
    view: View, client: ServiceIdentity | None, key: ServiceKey, side: Side
) -> ServiceIdentity | None:
    """Return the relevant client for calls to a Service: None if all namespaces behind are permissive.

    Like `catalog.relations.permissive.relevant_client`, which is about one place.
    """
    if all(is_permissive(view, namespace) for namespace in namespaces_behind(view, key, side)):
        return None
    return client


@derived
def mixed_services(view: View) -> frozenset[ServiceKey]:
    """Return the Services seen by every client because of producer routes, with other places for each.

    Their routes lead to permissive and to other namespaces, or redirect calls, which needs no permission.
    """
    return frozenset(
        key
        for key in _parents(view)
        if len(permissive := set(_permissiveness(view, key))) > 1
        or (permissive == {False} and _redirects_somewhere(view, key))
    )


mixed: Final = IN_VIEW.firewall(mixed_services)


def _backends_at(view: View, key: ServiceKey) -> tuple[ServiceKey, ...]:
    """Return the Services as backends of the routes in force at a Service."""
    routes = (route_of(view, route) for route in attached_routes(view, key))
    return tuple(dict.fromkeys(to for route in routes if route is not None for to in backends_named(route)))


_by_backend: Final = IN_VIEW.derived_index("services by backend of their routes", services, _backends_at)


def services_leading_to(view: View, backend: ServiceKey) -> tuple[ServiceKey, ...]:
    """Return the Services with a route in force to a Service as backend, sorted.

    They are not searched among all routes to the backend, which may be thousands.
    """
    return _by_backend(view).get(backend, ())


@derived
def consumed_services(view: View, namespace: Namespace) -> tuple[ServiceKey, ...]:
    """Return the Services with consumer routes of a namespace in force, sorted."""
    found = {
        key
        for route in routes_by_namespace(view).get(namespace, ())
        for key in attached_to(view, route)
        if key.namespace != namespace
    }
    return tuple(sorted(found))


def _parents(view: View) -> Iterable[ServiceKey]:
    return (key for key in routes_by_parent(view) if attached_routes(view, key))


def _redirects_somewhere(view: View, key: ServiceKey) -> bool:
    return any(redirects(view, key, port.port, None) for port in view.services[key].ports)


def _permissiveness(view: View, key: ServiceKey) -> Iterator[bool]:
    return (is_permissive(view, namespace) for namespace in namespaces_behind(view, key, None))
