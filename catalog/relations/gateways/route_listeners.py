"""Attachment of routes to the listeners of gateways: the one derivation for all readers.

A parentRef selects listeners by `sectionName` and `port`. The route attaches to the selected listeners which
allow the namespace and kind of the route, and have a common host name. A refusal has the reason of the first
condition without a listener.
"""

from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.refusals import refusal
from catalog.relations.gateways.verdicts import AttachedReason, GatewayVerdict, ListenerVerdict
from catalog.store.gateway import parent_gateway, route_of, routes_by_gateway
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.hostnames import shared
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey


@derived
def gateway_verdicts(view: View, key: ObjectKey) -> tuple[GatewayVerdict, ...]:
    """Return the verdicts about the gateways served here among a route's parents, in the route's order."""
    route = route_of(view, key)
    if route is None:
        return ()
    named = ((parent, parent_gateway(route, parent)) for parent in route.parents)
    return tuple(
        _verdict(view, route, parent, gateway)
        for parent, gateway in named
        if gateway is not None and served_gateway(view, gateway) is not None
    )


@derived
def routes_at_listener(view: View, gateway: PolicyKey, listener: str) -> tuple[ObjectKey, ...]:
    """Return the routes attached to a listener, sorted; their number is its `attachedRoutes`."""
    return tuple(
        sorted(
            key
            for key in routes_by_gateway(view).get(gateway, ())
            if any(
                verdict.gateway == gateway and listener in verdict.listeners
                for verdict in gateway_verdicts(view, key)
            )
        )
    )


def _verdict(view: View, route: GatewayRoute, parent: ParentRef, gateway: PolicyKey) -> GatewayVerdict:
    def refused(reason: AttachedReason, message: str) -> GatewayVerdict:
        return GatewayVerdict(parent, gateway, reason, message)

    if route.rules and all(rule.dropped for rule in route.rules):
        reasons = "; ".join(rule.dropped for rule in route.rules)
        return refused(AttachedReason.UNSUPPORTED_VALUE, f"all rules are out of force: {reasons}")
    selected = [item for item in listener_verdicts(view, gateway) if _selects(parent, item)]
    if not selected:
        return refused(AttachedReason.NO_MATCHING_PARENT, f"Gateway {gateway} lacks a {_wanted(parent)}")
    refusals = {item.listener.name: refusal(view, gateway.namespace, item, route) for item in selected}
    allowing = [item for item in selected if not refusals[item.listener.name]]
    if not allowing:
        message = f"Gateway {gateway} does not allow this {route.kind.name}: {'; '.join(refusals.values())}"
        return refused(AttachedReason.NOT_ALLOWED_BY_LISTENERS, message)
    fitting = [item for item in allowing if shared(item.listener.hostname, route.hostnames)]
    if not fitting:
        listed = ", ".join(f"{item.listener.name} ({item.listener.hostname})" for item in allowing)
        message = (
            f"the host names of the route ({', '.join(route.hostnames)}) differ from those of these "
            f"listeners of Gateway {gateway}: {listed}"
        )
        return refused(AttachedReason.NO_MATCHING_LISTENER_HOSTNAME, message)
    names = tuple(item.listener.name for item in fitting)
    message = f"attached to Gateway {gateway}: {', '.join(names)}"
    return GatewayVerdict(parent, gateway, AttachedReason.ACCEPTED, message, names)


def _selects(parent: ParentRef, item: ListenerVerdict) -> bool:
    return parent.section in (None, "", item.listener.name) and parent.port in (None, item.listener.port)


def _wanted(parent: ParentRef) -> str:
    name = f" named {parent.section}" if parent.section else ""
    port = "" if parent.port is None else f" at port {parent.port}"
    return f"listener{name}{port}"
