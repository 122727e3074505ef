"""Problems of routes whose parent is a Gateway or ListenerSet that the mesh does not have.

A route may name Gateways of other controllers. Those of the mesh's sources and namespaces are known whatever
their controller, and are no problem. Others may live where this control plane does not read. So a missing
Gateway is a warning, and only if the mesh has a Gateway of Meshwright, or the name is likely a mistake: it is
similar to the name of a Gateway, or is the name of a Service.
"""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.wording import OR_OUTSIDE, Place, meant
from catalog.relations.gateways.classes import served_gateway, similar_gateway
from catalog.store.gateway import gateways, listener_sets, parent_gateway, parent_set
from catalog.store.objects import origin_of
from catalog.store.view import View
from meshwright.mesh.gateway.routes import GatewayRoute
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import ServiceKey


def problems(place: Place, route: GatewayRoute) -> Iterator[Problem]:
    """Yield the problems of a route's references to missing Gateways and ListenerSets."""
    view = place.view
    for index, parent in enumerate(route.parents):
        key, field = parent_gateway(route, parent), f"spec.parentRefs[{index}]"
        if key is not None:
            yield from missing(
                place, field, key, "the route is not in force at this parent", _service(view, key)
            )
        yield from _missing_set(place, field, parent_set(route, parent))


def missing(place: Place, field: str, key: PolicyKey, effect: str, hint: str = "") -> Iterator[Problem]:
    """Yield a problem of a reference to a missing Gateway; `hint` is a sentence about another meaning."""
    view = place.view
    if key in gateways(view) or _is_out_of_sight(place, key.namespace):
        return
    near = similar_gateway(view, key)
    if not (near or hint or _has_own(view)):
        return
    or_outside = f", {OR_OUTSIDE}" if key.namespace != place.key.namespace else ""
    wanted = (
        f"This Gateway does not exist{near}{or_outside}, so {effect}. "
        f"{hint}Correct the reference, or create the Gateway."
    )
    yield place.warning(Code.UNKNOWN_PARENT_GATEWAY, field, str(key), wanted)


def _missing_set(place: Place, field: str, key: PolicyKey | None) -> Iterator[Problem]:
    view = place.view
    if key is None or key in listener_sets(view) or _is_out_of_sight(place, key.namespace):
        return
    near = meant([key.name], [item.name for item in listener_sets(view) if item.namespace == key.namespace])
    if not (near or _has_own(view)):
        return
    or_outside = f", {OR_OUTSIDE}" if key.namespace != place.key.namespace else ""
    wanted = (
        f"This ListenerSet does not exist{near}{or_outside}, so the route is not in force at this parent. "
        "Correct the reference, or create the ListenerSet."
    )
    yield place.warning(Code.UNKNOWN_PARENT_GATEWAY, field, str(key), wanted)


def _service(view: View, key: PolicyKey) -> str:
    """Return a sentence if the reference may mean a Service, whose kind a reference has to name."""
    if ServiceKey(key.namespace, ServiceName(key.name)) not in view.services:
        return ""
    return f"Service {key} exists: a reference to a Service has `kind: Service` and an empty `group`. "


def _has_own(view: View) -> bool:
    return any(served_gateway(view, key) is not None for key in gateways(view))


def _is_out_of_sight(place: Place, namespace: Namespace) -> bool:
    """Return whether a route of a cluster names a namespace outside of the mesh."""
    # The control plane does not read the objects of such a namespace.
    if namespace == place.key.namespace or namespace in place.view.namespaces:
        return False
    return isinstance(origin_of(place.view, place.key), InCluster)
