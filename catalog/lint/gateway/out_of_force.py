"""TrafficSplits and RoutePolicies without effect at ports where Gateway API routes are in force."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.wording import Place, listed
from catalog.relations.attachment import consumer_namespaces, routes_at
from catalog.relations.route_reach import attached_routes
from meshwright.mesh.names import Namespace
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import ServiceKey


def problems(place: Place, field: str, key: ServiceKey) -> Iterator[Problem]:
    """Yield a problem for each namespace whose routes decide in place of an object for a Service."""
    if key not in place.view.services or not attached_routes(place.view, key):
        return
    for namespace in (key.namespace, *consumer_namespaces(place.view, key)):
        for ports, route in _decided(place, key, namespace).items():
            whose = "" if namespace == key.namespace else f" of callers in namespace {namespace}"
            wanted = (
                f"{route} decides the calls{whose} to port {ports} of this Service, so this {place.key.kind} "
                "has no effect there. Delete the object, or the route."
            )
            yield place.warning(Code.OUT_OF_FORCE_BY_ROUTE, field, str(key), wanted)


def _decided(place: Place, key: ServiceKey, namespace: Namespace) -> dict[str, str]:
    """Return the first route by the ports of a Service, as a list in words."""
    first: dict[str, list[str]] = {}
    for port in place.view.services[key].ports:
        if routes := routes_at(place.view, key, port.port, namespace):
            first.setdefault(str(routes[0]), []).append(str(port.port))
    return {listed(ports): route for route, ports in first.items()}
