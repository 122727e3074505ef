"""Attachment of routes to the listeners of gateways: the one derivation for all readers.

A parentRef names a Gateway or a ListenerSet, and selects among the listeners of this object alone by
`sectionName` and `port`. The route attaches to the selected listeners which allow the namespace and kind of
the route, and have a common host name. A refusal has the reason of the first condition without a listener.
"""

from collections.abc import Iterator

from catalog.relations.gateways.listener_sets import served_parent
from catalog.relations.gateways.listeners import listeners_of_set
from catalog.relations.gateways.refusals import refusal
from catalog.relations.gateways.verdicts import AttachedReason, GatewayVerdict, ListenerVerdict
from catalog.store.gateway import (
    parent_set,
    route_of,
    routes_by_gateway,
    routes_by_set,
)
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.hostnames import shared
from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey


@derived
def gateway_verdicts(view: View, key: ObjectKey) -> tuple[GatewayVerdict, ...]:
    """Return the verdicts about the parents of a route at gateways served here, in the route's order."""
    route = route_of(view, key)
    if route is None:
        return ()
    return tuple(
        _verdict(view, route, parent, gateway, listener_set)
        for parent in route.parents
        for gateway, listener_set in _served(view, route, parent)
    )


@derived
def routes_at_listener(
    view: View, gateway: PolicyKey, listener: str, listener_set: PolicyKey | None = None
) -> tuple[ObjectKey, ...]:
    """Return the routes attached to a listener, sorted; their number is its `attachedRoutes`.

    Without a ListenerSet the listener is the gateway's own.
    """
    named = routes_by_gateway(view).get(gateway, ())
    if listener_set is not None:
        named = routes_by_set(view).get(listener_set, ())
    return tuple(
        sorted(
            key
            for key in named
            if any(
                verdict.gateway == gateway
                and verdict.listener_set == listener_set
                and listener in verdict.listeners
                for verdict in gateway_verdicts(view, key)
            )
        )
    )


def _served(
    view: View, route: GatewayRoute, parent: ParentRef
) -> Iterator[tuple[PolicyKey, PolicyKey | None]]:
    """Yield the gateway of a parent, if it is served here, and the ListenerSet if the parent is one."""
    owner = ObjectKey(parent.kind, parent.namespace or route.key.namespace, parent.name)
    gateway = served_parent(view, owner)
    if gateway is not None:
        yield gateway.key, parent_set(route, parent)


def _verdict(
    view: View, route: GatewayRoute, parent: ParentRef, gateway: PolicyKey, listener_set: PolicyKey | None
) -> GatewayVerdict:
    def refused(reason: AttachedReason, message: str) -> GatewayVerdict:
        return GatewayVerdict(parent, gateway, reason, message, listener_set=listener_set)

    where = f"Gateway {gateway}" if listener_set is None else f"ListenerSet {listener_set}"
    own = gateway if listener_set is None else listener_set
    if route.rules and all(rule.dropped for rule in route.rules):
        reasons = "; ".join(rule.dropped for rule in route.rules)
        return refused(AttachedReason.UNSUPPORTED_VALUE, f"all rules are out of force: {reasons}")
    listeners = listeners_of_set(view, gateway, listener_set)
    # Each Gateway has a listener of its own, so only a ListenerSet that is not allowed lacks all.
    if not listeners:
        message = f"Gateway {gateway} does not allow {where} in spec.allowedListeners"
        return refused(AttachedReason.NO_MATCHING_PARENT, message)
    selected = [item for item in listeners if _selects(parent, item)]
    if not selected:
        return refused(AttachedReason.NO_MATCHING_PARENT, f"{where} lacks a {_wanted(parent)}")
    refusals = {item.listener.name: refusal(view, own.namespace, item, route) for item in selected}
    allowing = [item for item in selected if not refusals[item.listener.name]]
    if not allowing:
        message = f"{where} does not allow this {route.kind.name}: {'; '.join(refusals.values())}"
        return refused(AttachedReason.NOT_ALLOWED_BY_LISTENERS, message)
    fitting = [item for item in allowing if shared(item.listener.hostname, route.hostnames)]
    if not fitting:
        listed = ", ".join(f"{item.listener.name} ({item.listener.hostname})" for item in allowing)
        message = (
            f"the host names of the route ({', '.join(route.hostnames)}) differ from those of these "
            f"listeners of {where}: {listed}"
        )
        return refused(AttachedReason.NO_MATCHING_LISTENER_HOSTNAME, message)
    names = tuple(item.listener.name for item in fitting)
    message = f"attached to {where}: {', '.join(names)}"
    return GatewayVerdict(parent, gateway, AttachedReason.ACCEPTED, message, names, listener_set)


def _selects(parent: ParentRef, item: ListenerVerdict) -> bool:
    return parent.section in (None, "", item.listener.name) and parent.port in (None, item.listener.port)


def _wanted(parent: ParentRef) -> str:
    name = f" named {parent.section}" if parent.section else ""
    port = "" if parent.port is None else f" at port {parent.port}"
    return f"listener{name}{port}"
