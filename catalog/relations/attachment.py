"""Attachment of Gateway API routes to the ports of Services: the one derivation for all readers.

- A route in the namespace of the Service is a producer route, for all callers. One of another namespace is a
  consumer route, for callers of the route's namespace, and replaces the producer routes of a port there.
- Without `sectionName` and `port` a route attaches to every port with a fitting protocol: HTTPRoutes and
  GRPCRoutes to ports with requests, TLSRoutes and TCPRoutes to the others.
- Routes of one namespace at one port are of one kind: GRPCRoute before HTTPRoute, TLSRoute and TCPRoute. A
  route of another kind is not in force there, and is refused without any other port. Kinds are compared
  within a namespace, so a consumer cannot put the routes of a producer out of force.
- Gateways as parents are decided by `catalog.relations.gateways`; other parents are ignored.

For example, an HTTPRoute `shop/books` with parent Service `shop/books` is a producer route at all HTTP ports.
"""

from collections.abc import Iterator
from typing import Final

from catalog.relations.backends.protocols import protocol_of
from catalog.relations.gateways.route_listeners import gateway_verdicts
from catalog.relations.references import resolved_rules, resolved_rules_at_gateways
from catalog.relations.verdicts import AcceptedReason, Attachment, ParentVerdict
from catalog.store.gateway import ROUTE_KINDS, parent_service, route_of, routes_by_parent
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.kinds import GRPC_ROUTE, HTTP_ROUTE, Kind
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.service import Service, ServiceKey, ServicePort

_OF_REQUESTS: Final = (GRPC_ROUTE, HTTP_ROUTE)


@derived
def attachment(view: View, key: ObjectKey) -> Attachment:
    """Return everything decided about a route; without parents and rules if the route does not exist."""
    gateways = gateway_verdicts(view, key)
    return Attachment(
        key,
        parent_verdicts(view, key),
        resolved_rules(view, key),
        _dropped(view, key),
        gateways,
        resolved_rules_at_gateways(view, key) if gateways else (),
    )


@derived
def parent_verdicts(view: View, key: ObjectKey) -> tuple[ParentVerdict, ...]:
    """Return the verdicts about the Services among the parents of a route, in the route's order."""
    route = route_of(view, key)
    if route is None:
        return ()
    named = ((parent, parent_service(route, parent)) for parent in route.parents)
    return tuple(
        _verdict(view, key, route, parent, service_key)
        for parent, service_key in named
        if service_key is not None
    )


@derived
def routes_at(view: View, key: ServiceKey, port: Port, namespace: Namespace) -> tuple[ObjectKey, ...]:
    """Return the routes of a namespace in force at a Service's port, sorted; all are of one kind."""
    return tuple(
        sorted(
            route_key
            for route_key in routes_by_parent(view).get(key, ())
            if route_key.namespace == namespace
            and any(
                verdict.service == key and port in verdict.ports
                for verdict in parent_verdicts(view, route_key)
            )
        )
    )


@derived
def consumer_namespaces(view: View, key: ServiceKey) -> tuple[Namespace, ...]:
    """Return the namespaces with consumer routes in force at a Service, sorted."""
    return tuple(
        sorted(
            {
                route_key.namespace
                for route_key in routes_by_parent(view).get(key, ())
                if route_key.namespace != key.namespace
                and any(
                    verdict.service == key and verdict.ports for verdict in parent_verdicts(view, route_key)
                )
            }
        )
    )


def _verdict(
    view: View, key: ObjectKey, route: GatewayRoute, parent: ParentRef, service_key: ServiceKey
) -> ParentVerdict:
    def refused(reason: AcceptedReason, message: str) -> ParentVerdict:
        return ParentVerdict(parent, service_key, reason, message)

    if bad := _without_rules(route):
        # Before the Service is looked at, because no Service can make such a route good.
        return refused(AcceptedReason.UNSUPPORTED_VALUE, bad)
    service = view.services.get(service_key)
    if service is None:
        message = f"Service {service_key} does not exist, or is of type ExternalName"
        return refused(AcceptedReason.NO_MATCHING_PARENT, message)
    if service.headless:
        message = f"Service {service_key} is headless: its callers choose endpoints themselves"
        return refused(AcceptedReason.NO_MATCHING_PARENT, message)
    named = named_ports(service, parent)
    if not named:
        return refused(AcceptedReason.NO_MATCHING_PARENT, f"Service {service_key} has no {_wanted(parent)}")
    fitting = tuple(port for port in named if fits(view, service_key, port, key.kind))
    rivals = {port.port: rival_kind(view, service_key, port, key) for port in named}
    ports = tuple(port.port for port in fitting if rivals[port.port] is None)
    if ports:
        return ParentVerdict(
            parent, service_key, AcceptedReason.ACCEPTED, _attached(service_key, ports, rivals), ports
        )
    # A conflict before an unfit protocol: the author of the route learns more from it.
    if claimed := {port: rival for port, rival in rivals.items() if rival is not None}:
        return refused(AcceptedReason.CONFLICTED, _conflict(service_key, key, claimed))
    spoken = ", ".join(sorted({protocol_of(view, service_key, port) for port in named}))
    message = f"Service {service_key} has no {_wanted(parent)} for {key.kind.name}s, only ports with {spoken}"
    return refused(AcceptedReason.NO_MATCHING_PARENT, message)


def named_ports(service: Service, parent: ParentRef) -> tuple[ServicePort, ...]:
    """Return the ports of a Service for a parentRef, by number; without a section and port all."""
    unique = {port.port: service.port(port.port) for port in service.ports}
    return tuple(
        port
        for number, port in sorted(unique.items())
        if port is not None
        and parent.port in (None, number)
        and (not parent.section or parent.section == port.name)
    )


def fits(view: View, key: ServiceKey, port: ServicePort, route_kind: Kind) -> bool:
    """Return whether routes of a kind can work at a port: by requests or by connections."""
    return protocol_of(view, key, port).is_http is (route_kind in _OF_REQUESTS)


def rival_kind(view: View, key: ServiceKey, port: ServicePort, route_key: ObjectKey) -> Kind | None:
    """Return the kind of routes in force at a port in place of a route of the same namespace, or None."""
    strongest = _strongest(view, key, port, route_key.namespace)
    if strongest is None or ROUTE_KINDS.index(route_key.kind) <= ROUTE_KINDS.index(strongest):
        return None
    return strongest


@derived
def _strongest(view: View, key: ServiceKey, port: ServicePort, namespace: Namespace) -> Kind | None:
    """Return the first kind with a possible route of a namespace at a Service's port."""
    service = view.services[key]
    possible = {
        route_key.kind
        for route_key in routes_by_parent(view).get(key, ())
        if route_key.namespace == namespace
        and fits(view, key, port, route_key.kind)
        and (route := route_of(view, route_key)) is not None
        and not _without_rules(route)
        and _names(service, route, port)
    }
    return min(possible, key=ROUTE_KINDS.index, default=None)


def _names(service: Service, route: GatewayRoute, port: ServicePort) -> bool:
    return any(
        parent_service(route, parent) == service.key and port in named_ports(service, parent)
        for parent in route.parents
    )


def _without_rules(route: GatewayRoute) -> str:
    """Return why no rule of a route is in force, or an empty text; a route without rules answers 404."""
    if route.rules and all(rule.dropped for rule in route.rules):
        return "no rule is in force: " + "; ".join(_reasons(route))
    return ""


def _dropped(view: View, key: ObjectKey) -> str:
    route = route_of(view, key)
    if route is None or _without_rules(route):
        return ""
    return "; ".join(_reasons(route))


def _reasons(route: GatewayRoute) -> Iterator[str]:
    for index, rule in enumerate(route.rules):
        if rule.dropped:
            # The specification demands these first words.
            yield f"Dropped Rule spec.rules[{index}]: {rule.dropped}"


def _wanted(parent: ParentRef) -> str:
    number = "" if parent.port is None else f" {parent.port}"
    name = f" named {parent.section}" if parent.section else ""
    return f"port{number}{name}"


def _attached(key: ServiceKey, ports: tuple[Port, ...], rivals: dict[Port, Kind | None]) -> str:
    listed = ", ".join(map(str, ports))
    text = f"attached to port {listed}" if len(ports) == 1 else f"attached to ports {listed}"
    left = "".join(
        f"; {rival.name}s have port {port}" for port, rival in sorted(rivals.items()) if rival is not None
    )
    return f"{text} of Service {key}{left}"


def _conflict(key: ServiceKey, route_key: ObjectKey, claimed: dict[Port, Kind]) -> str:
    whose = "; ".join(f"port {port} has {rival.name}s" for port, rival in sorted(claimed.items()))
    return (
        f"other routes of namespace {route_key.namespace} take precedence at Service {key}: {whose}, which "
        f"precede {route_key.kind.name}s"
    )
