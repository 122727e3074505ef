"""Refusals of routes by listeners, with the cause: protocol, kinds or namespaces.

For example: `listener http allows routes of namespace shop alone (allowedRoutes.namespaces.from is Same)`.
"""

from catalog.relations.gateways.namespaces import allows_namespace
from catalog.relations.gateways.verdicts import ListenerVerdict
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import AllowedRoutes, RoutesFrom
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.names import Namespace


def refusal(view: View, own: Namespace, item: ListenerVerdict, route: GatewayRoute) -> str:
    """Return why a listener of a gateway in namespace `own` refuses a route; empty if it does not."""
    cause = _of_kind(item, route) or _of_namespace(view, own, item.listener.allowed, route.key.namespace)
    return f"listener {item.listener.name} {cause}" if cause else ""


def _of_kind(item: ListenerVerdict, route: GatewayRoute) -> str:
    if route.kind in item.kinds:
        return ""
    if not item.accepted and not item.kinds:
        return f"is not in force: {item.message}"
    listener = item.listener
    if listener.allowed.kinds and route.kind not in listener.allowed.kinds:
        allowed = ", ".join(kind.name for kind in listener.allowed.kinds)
        return f"allows the kinds {allowed} alone (allowedRoutes.kinds), and not {route.kind.name}"
    if item.unknown_kinds or not item.kinds:
        return f"has protocol {listener.protocol}, to which {route.kind.name}s cannot attach"
    kinds = " and ".join(f"{kind.name}s" for kind in item.kinds)
    return f"has protocol {listener.protocol}, to which {kinds} attach, and not {route.kind.name}s"


def _of_namespace(view: View, own: Namespace, allowed: AllowedRoutes, namespace: Namespace) -> str:
    if allows_namespace(view, allowed.namespaces, allowed.selector, own, namespace):
        return ""
    match allowed.namespaces:
        case RoutesFrom.ALL | RoutesFrom.NONE:
            whose = "routes of no namespace"
        case RoutesFrom.SAME:
            whose = f"routes of namespace {own} alone"
        case RoutesFrom.SELECTOR:
            whose = f"routes of the selected namespaces alone, and {namespace} is not selected"
    return f"allows {whose} (allowedRoutes.namespaces.from is {allowed.namespaces.value})"
