"""TrafficSplits of a request, and the services for the answer: a part of the oracle.

See `catalog.oracle.decide` for the rules in words.
"""

import enum
from collections.abc import Iterator

from catalog.oracle.gateway import Way, routed, routes_for
from catalog.oracle.request.request import Request, fits
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.workloads import backing
from catalog.store.smi import http_route_groups, splits_by_apex
from catalog.store.view import View
from meshwright.mesh.policies.smi import Backend, PolicyKey, TrafficSplit
from meshwright.mesh.service import ServiceKey, ServicePort


class SplitVerdict(enum.StrEnum):
    """Verdict of one TrafficSplit about a request to the apex; only DECIDES may decide the request.

    Of several with DECIDES, the first by precedence decides (`split_for`). With a verdict up to UNKNOWN_GROUP
    the split is not in force at all.
    """

    FOREIGN_APEX = "is not in force, because its apex is in another namespace"
    NO_WEIGHT = "is not in force, because no existing backend has a weight above 0"
    TOO_HEAVY = "is not in force, because its weights add up to more than 2^32 - 1"
    UNKNOWN_GROUP = (
        "is not in force, because an HTTPRouteGroup that it names does not exist, or no group has a match"
    )
    BESIDE_ROUTE = "does not count, because a route of the Gateway API decides the calls to the port"
    HTTP_ONLY = "does not count, because it is only for some HTTP requests, and the port speaks TCP"
    OTHER_REQUESTS = "does not count, because its matches do not fit the request"
    DECIDES = "may decide"


def judge_split(view: View, split: TrafficSplit, request: Request, port: ServicePort) -> SplitVerdict:
    """Return the verdict on a TrafficSplit of the called service: whether it decides this request."""
    if split.apex.namespace != split.key.namespace:
        return SplitVerdict.FOREIGN_APEX
    total = sum(backend.weight for backend in split.backends if backend_key(split, backend) in view.services)
    if total <= 0:
        return SplitVerdict.NO_WEIGHT
    if total >= 2**32:
        return SplitVerdict.TOO_HEAVY
    if routes_for(view, request, port):
        return SplitVerdict.BESIDE_ROUTE
    groups = [http_route_groups(view).get(PolicyKey(split.key.namespace, name)) for name in split.matches]
    if not groups:
        return SplitVerdict.DECIDES
    matches = [match for group in groups if group is not None for match in group.matches]
    # A split with a missing group is out of force, unlike an access rule, so calls go to the apex itself.
    if None in groups or not matches:
        return SplitVerdict.UNKNOWN_GROUP
    if not spoken(port, backing(view, request.service)).is_http:
        return SplitVerdict.HTTP_ONLY
    result = any(fits(match, request) for match in matches)
    return SplitVerdict.DECIDES if result else SplitVerdict.OTHER_REQUESTS


def in_force(view: View, split: TrafficSplit, request: Request, port: ServicePort) -> bool:
    """Return whether a TrafficSplit of the called service decides any requests to the port."""
    return judge_split(view, split, request, port) in (SplitVerdict.DECIDES, SplitVerdict.OTHER_REQUESTS)


def split_for(view: View, request: Request, port: ServicePort) -> TrafficSplit | None:
    """Return the deciding split: with fitting matches before without, then the oldest, then by name.

    Splits without a creation time are last.
    """
    rivals = splits_by_apex(view).lookup(request.service)
    traffic_splits = [
        rival for rival in rivals if judge_split(view, rival, request, port) is SplitVerdict.DECIDES
    ]
    return min(traffic_splits, key=lambda s: (not s.matches, not s.created, s.created, s.key), default=None)


def backends(
    view: View, request: Request, port: ServicePort, split: TrafficSplit | None
) -> Iterator[tuple[ServiceKey, ServicePort, int]]:
    """Yield the services for the answer instead of the called one, with port and weight.

    A route of the Gateway API at the port decides in place of a split (`catalog.oracle.gateway`).
    Splits do not nest: a backend means the endpoints of the service, even of an apex. For example, a split of
    `cart` yields `cart-v1` with weight 90 and `cart-v2` with weight 10.
    """
    if (found := routed(view, request, port)) is not None:
        yield from ((way.service, way.port, way.weight) for way in found.ways)
        return
    if split is None:
        yield request.service, port, 1
        return
    weights: dict[ServiceKey, int] = {}
    for backend in split.backends:
        key = backend_key(split, backend)
        weights[key] = weights.get(key, 0) + backend.weight
    for key, weight in sorted(weights.items()):
        their_port = _same_port(view, key, port)
        if their_port is not None:
            yield key, their_port, weight


def ways(view: View, request: Request, port: ServicePort, split: TrafficSplit | None) -> Iterator[Way]:
    """Yield the services of `backends`, each with the request in the form in which it leaves the client.

    A route, and each of its backends, may change the request.
    """
    if (found := routed(view, request, port)) is not None:
        yield from found.ways
        return
    yield from (Way(*backend, request) for backend in backends(view, request, port, split))


def backend_key(split: TrafficSplit, backend: Backend) -> ServiceKey:
    """Return the service of a TrafficSplit's backend, in the namespace of the TrafficSplit."""
    return ServiceKey(split.key.namespace, backend.service)


def _same_port(view: View, key: ServiceKey, port: ServicePort) -> ServicePort | None:
    """Return a service's port with the number of the called one, else with the same name."""
    service = view.services.get(key)
    if service is None:
        return None
    named = [service_port for service_port in service.ports if port.name and service_port.name == port.name]
    return service.port(port.port) or (named[0] if named else None)
