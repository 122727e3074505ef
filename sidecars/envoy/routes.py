"""Route configurations (RDS): inbound ones carry a port's access rules, outbound ones the splits.

A changed HTTP policy is one changed route configuration: no listener changes, and connections that are open
already obey at their next request. What is no request any more, a WebSocket, does not; where the policy
admits less than before, the port's filter chain is drained once (`renewal`), and nothing remains changed.

Routes have no timeout (0): a stream may live as long as its ends want, and a deadline that nobody wrote
down would cut it. Open Service Mesh did the same.
"""

from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.proxy import InboundPort, OutboundRoute, OutboundService, ProxyPolicy
from mesh.policy import HTTPMatch
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from sidecars.envoy import names, rbac
from sidecars.envoy.renewal import RENEWAL
from sidecars.envoy.typed import Reference, packed, reference
from xds.protocol.resource import CLUSTER, Resource, encode

HTTP_RBAC = "envoy.filters.http.rbac"
"""The filter's name, by which a route configuration overrides it."""

_SLASH: Final = r"(?:/|\\|%2f|%5c)"
_DOT_SEGMENT: Final = rf"(?i).*{_SLASH}(?:\.|%2e){{1,2}}(?:(?:;|{_SLASH}).*)?"
"""A path that has a dot segment if slashes, backslashes and dots are unescaped, or parameters (`;`) cut."""

_Route = route_components_pb2.Route
_Action = route_components_pb2.RouteAction


def inbound(policy: ProxyPolicy, port: InboundPort) -> Resource:
    """Return the route configuration of an inbound port: everything to the application, under its rules."""
    cluster = names.local_cluster(policy.primary, port.port)
    per_route = http_rbac_pb2.RBACPerRoute(
        rbac=http_rbac_pb2.RBAC(rules=rbac.rules(port.access, policy.trust_domain))
    )
    found = [_guard(), _route("local", None, _Action(cluster=cluster))]
    message = route_pb2.RouteConfiguration(
        name=names.inbound_routes(port.port),
        virtual_hosts=[_host(str(policy.primary), found)],
        typed_per_filter_config={HTTP_RBAC: packed(per_route)},
    )
    return encode(message, frozenset({reference(CLUSTER, cluster)}), renewal=RENEWAL)


def outbound(service: OutboundService) -> Resource:
    """Return the route configuration of a service's port: its splits in order, then the service itself."""
    found: list[_Route] = []
    references: set[Reference] = set()
    for route in service.routes:
        name = f"split:{route.split}" if route.split else f"service:{service.service}"
        matches = route.matches if route.matches is not None else (None,)
        found.extend(_outbound_route(name, match, route) for match in matches)
        references |= {reference(CLUSTER, names.cluster(each)) for each in route.backends}
    message = route_pb2.RouteConfiguration(
        name=names.outbound_routes(service), virtual_hosts=[_host(str(service.service), found)]
    )
    return encode(message, frozenset(references))


def _guard() -> _Route:
    """Refuse paths that an application might read as others than the rules do.

    Where escaped slashes are kept, dot segments beside one have not been resolved. It stands at every port:
    a connection that began while they were kept keeps them until its filter chain has drained.
    """
    return _Route(
        name="escaped-dot-segment",
        match=route_components_pb2.RouteMatch(safe_regex=rbac.full_match(_DOT_SEGMENT).safe_regex),
        direct_response=route_components_pb2.DirectResponseAction(status=400),
    )


def _outbound_route(name: str, match: HTTPMatch | None, route: OutboundRoute) -> _Route:
    if not route.backends:
        return _Route(
            name=name,
            match=_match(match),
            direct_response=route_components_pb2.DirectResponseAction(status=503),
        )
    if len(route.backends) == 1:
        return _route(name, match, _Action(cluster=names.cluster(route.backends[0])))
    # Backends of weight 0 stay: when they get a weight, only this route configuration changes.
    weighted = route_components_pb2.WeightedCluster(
        clusters=[
            route_components_pb2.WeightedCluster.ClusterWeight(
                name=names.cluster(each), weight=UInt32Value(value=each.weight)
            )
            for each in route.backends
        ]
    )
    return _route(name, match, _Action(weighted_clusters=weighted))


def _route(name: str, match: HTTPMatch | None, action: _Action) -> _Route:
    action.timeout.CopyFrom(Duration())
    return _Route(name=name, match=_match(match), route=action)


def _match(match: HTTPMatch | None) -> route_components_pb2.RouteMatch:
    if match is None:
        return route_components_pb2.RouteMatch(prefix="/")
    headers = rbac.header_matchers(match)
    if match.path_regex is None:
        return route_components_pb2.RouteMatch(prefix="/", headers=headers)
    path = rbac.full_match(match.path_regex).safe_regex
    return route_components_pb2.RouteMatch(safe_regex=path, headers=headers)


def _host(name: str, routes: list[_Route]) -> route_components_pb2.VirtualHost:
    return route_components_pb2.VirtualHost(name=name, domains=["*"], routes=routes)
