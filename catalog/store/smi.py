"""SMI's policies in a view, with their indexes."""

from typing import Final

from catalog.store.view import IN_VIEW, kind
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, TCP_ROUTE, TRAFFIC_SPLIT, TRAFFIC_TARGET
from meshwright.mesh.policies.smi import HTTPRouteGroup, PolicyKey, TCPRoute, TrafficSplit, TrafficTarget
from meshwright.mesh.service import ServiceKey

http_route_groups: Final = kind(HTTPRouteGroup, HTTP_ROUTE_GROUP, "HTTPRouteGroups", lambda group: group.key)
tcp_routes: Final = kind(TCPRoute, TCP_ROUTE, "TCPRoutes", lambda tcp_route: tcp_route.key)
targets: Final = kind(
    TrafficTarget, TRAFFIC_TARGET, "TrafficTargets", lambda traffic_target: traffic_target.key
)
splits: Final = kind(TrafficSplit, TRAFFIC_SPLIT, "TrafficSplits", lambda traffic_split: traffic_split.key)


def _sources(_: PolicyKey, target: TrafficTarget) -> tuple[ServiceIdentity, ...]:
    return tuple(dict.fromkeys(target.sources))


def _ends(_: PolicyKey, target: TrafficTarget) -> tuple[tuple[ServiceIdentity, ServiceIdentity], ...]:
    return tuple((identity, target.destination) for identity in dict.fromkeys(target.sources))


def _backends(_: PolicyKey, split: TrafficSplit) -> tuple[ServiceKey, ...]:
    return tuple(
        dict.fromkeys(ServiceKey(split.key.namespace, backend.service) for backend in split.backends)
    )


targets_by_source: Final = IN_VIEW.index("TrafficTargets by source", targets, _sources)
targets_by_destination: Final = IN_VIEW.index(
    "TrafficTargets by destination", targets, lambda _, target: (target.destination,)
)
targets_between: Final = IN_VIEW.index("TrafficTargets by both ends", targets, _ends)
"""TrafficTargets by source and destination."""

splits_by_apex: Final = IN_VIEW.index("TrafficSplits by apex", splits, lambda _, split: (split.apex,))
splits_by_backend: Final = IN_VIEW.index("TrafficSplits by backend", splits, _backends)
