"""Refusals of routes by listeners, with the cause: protocol, kinds or namespaces.

For example: `listener http allows routes of namespace shop alone (allowedRoutes.namespaces.from is Same)`.
"""

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
    match allowed.namespaces:
        case RoutesFrom.ALL:
            return ""
        case RoutesFrom.SAME:
            is_allowed, whose = namespace == own, f"routes of namespace {own} alone"
        case RoutesFrom.NONE:
            is_allowed, whose = False, "routes of no namespace"
        case RoutesFrom.SELECTOR:
            selector = allowed.selector
            is_allowed = selector is not None and selector.fits(_labels(view, namespace))
            whose = f"routes of the selected namespaces alone, and {namespace} is not selected"
    if is_allowed:
        return ""
    return f"allows {whose} (allowedRoutes.namespaces.from is {allowed.namespaces.value})"


def _labels(view: View, namespace: Namespace) -> dict[str, str]:
    """Return the labels of a namespace, with its name as every cluster sets it."""
    found = view.namespaces.get(namespace)
    own = {} if found is None else dict(found.labels)
    return {"kubernetes.io/metadata.name": namespace} | own
