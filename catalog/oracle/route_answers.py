"""Places that may answer a request, and whether the client's sidecar takes calls to a Service's port.

A part of the oracle; see `catalog.oracle.decide` for the rules in words.
"""

from catalog.oracle.gateway import places_of_routes, redirects, routes_for
from catalog.oracle.preconditions import accepts_everyone
from catalog.oracle.request.request import Request
from catalog.oracle.splits import backends, in_force
from catalog.oracle.targets import Place, Verdict, verdicts
from catalog.relations.backends.endpoints import endpoints
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.store.smi import splits_by_apex
from catalog.store.view import View
from meshwright.mesh.service import ServiceKey, ServicePort


def places(view: View, key: ServiceKey, port: ServicePort) -> tuple[tuple[Place, bool], ...]:
    """Return the possible identities and ports behind a service's port, each with True for HTTP; sorted.

    Endpoints outside the mesh are missing, because mTLS is impossible there. For example: the ServiceAccount
    `shop/cart` at port 8080, with True.
    """
    is_http = spoken(port, backing(view, key)).is_http
    result = {
        Place(endpoint.identity, endpoint.port)
        for endpoint in endpoints(view, key, port)
        if endpoint.identity
    }
    return tuple((place, is_http) for place in sorted(result))


def offered(view: View, request: Request, port: ServicePort) -> bool:
    """Return whether the client's sidecar accepts calls to a service's port, if some may be answered."""
    if routes_for(view, request, port):
        return _offered_by_routes(view, request, port)
    rivals = splits_by_apex(view).lookup(request.service)
    splits = [rival for rival in rivals if in_force(view, rival, request, port)]
    ways = [way for split in splits for way in backends(view, request, port, split)]
    if all(split.matches for split in splits):  # the apex answers requests that no split takes
        if accepts_everyone(view, request.service.namespace):
            return True
        ways.append((request.service, port, 1))
    asked = ((key, their_port) for key, their_port, weight in ways if weight > 0)
    return any(may_answer(view, request, place) for item in asked for place in places(view, *item))


def _offered_by_routes(view: View, request: Request, port: ServicePort) -> bool:
    if accepts_everyone(view, request.service.namespace) or redirects(view, request, port):
        return True
    behind = ((request.service, port), *places_of_routes(view, request, port))
    return any(may_answer(view, request, place) for item in behind for place in places(view, *item))


def may_answer(view: View, request: Request, place: tuple[Place, bool]) -> bool:
    """Return whether a place admits any request or connection of the client."""
    return accepts_everyone(view, place[0].identity.namespace) or any(
        verdict in (Verdict.ADMITS, Verdict.OTHER_REQUESTS) for _, verdict in verdicts(view, request, place)
    )
