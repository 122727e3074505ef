"""Route configurations (RDS): inbound with a port's access rules, outbound with splits.

A changed HTTP policy changes one route configuration, never a listener, and open connections apply the change
from the next request. An upgraded connection such as a WebSocket has no next request. Therefore the port's
filter chain is drained once if the policy admits less than before (`renewal`).

The timeout of routes is disabled (0), because a stream may live as long as both ends want, and a default
deadline would cut the stream. Open Service Mesh did the same.
"""

from collections.abc import Iterator
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.destinations import ExternalDestination
from catalog.policy.values.inbound import InboundPort
from catalog.policy.values.outbound import OutboundRoute, OutboundService, RequestRule
from catalog.policy.values.outside import OutsideHost, OutsideRange, OutsideRoute
from catalog.store.settings import METHOD_OVERRIDE_HEADERS, DenialReasons, MethodOverrides
from meshwright.mesh.matching import Regex, RequestMatch
from meshwright.mesh.names import Namespace, Port, TrustDomain
from meshwright.mesh.policies.egress import ANY_HOST
from meshwright.mesh.policies.resilience import RetryPolicy
from meshwright.mesh.policies.routing import RouteActions
from meshwright.mesh.policies.smi import HTTPMatch, PolicyKey
from meshwright.mesh.policies.upstreams import HashKey, KeyKind
from meshwright.mesh.service import ServiceKey, Upstream
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.common_messages import percent, reference
from meshwright.sidecars.envoy.features import faults, order, paths
from meshwright.sidecars.envoy.routes import virtual_clusters as counting
from meshwright.sidecars.envoy.routes.renewal import RENEWAL
from meshwright.sidecars.envoy.rules import headers, matching, retries
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from xds.protocol.resources.resource import CLUSTER, Reference, Resource, encode

_Route = route_components_pb2.Route
_Action = route_components_pb2.RouteAction
_UNRULED: Final = RequestRule(PolicyKey(Namespace(""), ""), None, RouteActions())
"""The rule for requests that match no other rule."""


def inbound(
    trust_domain: TrustDomain,
    denials: DenialReasons,
    primary: ServiceKey,
    port: InboundPort,
    overrides: MethodOverrides = MethodOverrides.KEEP,
) -> Resource:
    """Return the route configuration of an inbound port: every request to the application, under rules.

    If several matches admit requests, each is counted.
    """
    cluster = names.local_cluster(primary, port.port)
    local = _route("local", (), _Action(cluster=cluster))
    message = _configuration(names.inbound_routes(port.port), str(primary), [local])
    message.virtual_hosts[0].virtual_clusters.extend(counting.counted(port))
    for feature in order.inbound(trust_domain, denials, port):
        feature.to_routes(message)
    if overrides is MethodOverrides.REMOVE:
        # The router removes these after the rules have checked the request with all its headers.
        message.request_headers_to_remove.extend(METHOD_OVERRIDE_HEADERS)
    return encode(message, frozenset({reference(CLUSTER, cluster)}), renewal=RENEWAL)


def outbound(service: OutboundService, retry: RetryPolicy | None = None) -> Resource:
    """Return the route configuration of a service port: the splits in order, then the service itself.

    If requests may take several routes, each is counted.
    """
    routes: list[_Route] = []
    counted: list[str] = []
    references: set[Reference] = set()
    for route in service.routes:
        name = f"split:{route.split}" if route.split else f"{_word(service.upstream)}:{service.upstream}"
        for match, rule in _ways_of(route, service.rules):
            requests = tuple(http_match.request_match for http_match in match)
            routes.append(_outbound_route(name, requests, route))
            counted.append(names.counted_route(service.port, (route.split, rule.by), match))
            _treat(routes[-1], rule.actions)
            _mirror(routes[-1], rule)
            _hash(routes[-1], route.keys)
        references |= {reference(CLUSTER, names.cluster(backend)) for backend in route.backends}
    references |= {
        reference(CLUSTER, names.cluster(access_rule.mirror))
        for access_rule in service.rules
        if access_rule.mirror
    }
    if len(routes) > 1:  # a single route has the statistics of the whole service
        for way, name in zip(routes, counted, strict=True):
            way.stat_prefix = name
    if service.retries is not None:
        for way in routes:
            if way.HasField("route"):
                way.route.retry_policy.CopyFrom(retries.policy(service.retries, farther=service.fails_over))
    message = _configuration(names.outbound_routes(service), str(service.upstream), routes)
    for feature in order.outbound(service, retry):
        feature.to_routes(message)
    return encode(message, frozenset(references))


def outside(port: Port, to: OutsideRange) -> Resource:
    """Return the route configuration of an egress range, by the host in requests.

    A host with the port, or with the root dot of DNS, is the same host. A request without a matching route
    gets 404.
    """
    hosts = [_outside_host(port, outside_host) for outside_host in to.hosts]
    message = route_pb2.RouteConfiguration(name=names.outside_routes(port, to), virtual_hosts=hosts)
    ways = {_way_out(port, route) for host in to.hosts for route in host.routes}
    return encode(message, frozenset(reference(CLUSTER, way) for way in ways))


def _outside_host(port: Port, host: OutsideHost) -> route_components_pb2.VirtualHost:
    routes = [
        _route(f"egress:{host.name}", match, _Action(cluster=_way_out(port, route)))
        for route in host.routes
        for match in (
            [(http_match.request_match,) for http_match in route.matches]
            if route.matches is not None
            else [()]
        )
    ]
    if any(route.matches is not None for route in host.routes):
        # Only matches compare paths, so the guard is needed only with them, and must precede them.
        routes.insert(0, paths.guard())
    shown = f"[{host.name}]" if ":" in host.name else host.name
    rooted = [] if ":" in host.name else [f"{shown}."]
    domains = [item for name in (shown, *rooted) for item in (name, f"{name}:{port}")]
    return route_components_pb2.VirtualHost(
        name=f"egress_virtual-host|{host.name}",
        domains=[shown] if host.name == ANY_HOST else domains,
        routes=routes,
    )


def _way_out(port: Port, route: OutsideRoute) -> str:
    if route.host is None:
        return names.PASSTHROUGH_HTTP_CLUSTER
    return names.cluster(ExternalDestination(route.host, port, is_http=True))


def _ways_of(
    route: OutboundRoute, rules: tuple[RequestRule, ...]
) -> Iterator[tuple[tuple[HTTPMatch, ...], RequestRule]]:
    """Yield the conditions of a route's requests in order, each with the applicable rule."""
    for rule in (*rules, _UNRULED):
        for match in route.matches if route.matches is not None else (None,):
            for further in rule.matches if rule.matches is not None else (None,):
                both = (http_match for http_match in (match, further) if http_match is not None)
                yield tuple(dict.fromkeys(both)), rule
        # A rule without matches applies to all requests, so rules after it never apply.
        if rule.matches is None:
            return


def _mirror(way: _Route, rule: RequestRule) -> None:
    """Mirror requests of a route; the copy keeps the host, to which Envoy would append `-shadow`."""
    if rule.mirror is None or rule.actions.mirror is None or not way.HasField("route"):
        return
    way.route.request_mirror_policies.add(
        cluster=names.cluster(rule.mirror),
        runtime_fraction=base_pb2.RuntimeFractionalPercent(
            default_value=percent(rule.actions.mirror.percent)
        ),
        disable_shadow_host_suffix_append=True,
    )


def _treat(way: _Route, actions: RouteActions) -> None:
    if actions.timeout is not None and way.HasField("route"):
        way.route.timeout.CopyFrom(duration(actions.timeout))
    way.request_headers_to_add.extend(headers.to_add(actions.request_headers))
    way.request_headers_to_remove.extend(actions.request_headers.remove)
    way.response_headers_to_add.extend(headers.to_add(actions.response_headers))
    way.response_headers_to_remove.extend(actions.response_headers.remove)
    if actions.faulty:
        faults.harm(way, actions)


def _hash(way: _Route, keys: tuple[HashKey, ...]) -> None:
    for key in keys if way.HasField("route") else ():
        match key.kind:
            case KeyKind.HEADER:
                header = _Action.HashPolicy.Header(header_name=matching.header_name(key.name))
                way.route.hash_policy.add(header=header)
            case KeyKind.COOKIE:
                ttl = None if key.ttl is None else duration(key.ttl)
                cookie = _Action.HashPolicy.Cookie(name=key.name, ttl=ttl, path=key.path)
                way.route.hash_policy.add(cookie=cookie)
            case KeyKind.QUERY:
                way.route.hash_policy.add(query_parameter=_Action.HashPolicy.QueryParameter(name=key.name))


def _outbound_route(name: str, match: tuple[RequestMatch, ...], route: OutboundRoute) -> _Route:
    if not route.backends:
        return _Route(
            name=name,
            match=_match(match),
            direct_response=route_components_pb2.DirectResponseAction(status=503),
        )
    if len(route.backends) == 1:
        return _route(name, match, _Action(cluster=names.cluster(route.backends[0])))
    # Backends of weight 0 stay, so that a new weight changes only this route configuration.
    weighted = route_components_pb2.WeightedCluster(
        clusters=[
            route_components_pb2.WeightedCluster.ClusterWeight(
                name=names.cluster(backend), weight=UInt32Value(value=backend.weight)
            )
            for backend in route.backends
        ]
    )
    return _route(name, match, _Action(weighted_clusters=weighted))


def _route(name: str, match: tuple[RequestMatch, ...], action: _Action) -> _Route:
    action.timeout.CopyFrom(Duration())
    return _Route(name=name, match=_match(match), route=action)


def _match(matches: tuple[RequestMatch, ...]) -> route_components_pb2.RouteMatch:
    """Match requests that fit all conditions.

    A route takes one path expression, so further ones match a header.
    """
    headers = [header for match in matches for header in matching.header_matchers(match)]
    paths = [match.path.regex for match in matches if isinstance(match.path, Regex)]
    headers += map(matching.path_matcher, paths[1:])
    if not paths:
        return route_components_pb2.RouteMatch(prefix="/", headers=headers)
    regex = matching.full_match(paths[0]).safe_regex
    return route_components_pb2.RouteMatch(safe_regex=regex, headers=headers)


def _word(upstream: Upstream) -> str:
    return "service" if isinstance(upstream, ServiceKey) else "host"


def _configuration(name: str, host: str, routes: list[_Route]) -> route_pb2.RouteConfiguration:
    every = route_components_pb2.VirtualHost(name=host, domains=["*"], routes=routes)
    return route_pb2.RouteConfiguration(name=name, virtual_hosts=[every])
