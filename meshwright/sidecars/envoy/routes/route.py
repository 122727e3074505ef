"""Route configurations (RDS): inbound with a port's access rules, outbound with a service's route table.

A changed HTTP policy changes one route configuration, never a listener, and open connections apply the change
from the next request. An upgraded connection such as a WebSocket has no next request. Therefore the port's
filter chain is drained once if the policy admits less than before (`renewal`).

The timeout of routes is disabled (0), because a stream may live as long as both ends want, and a default
deadline would cut the stream. Open Service Mesh did the same.
"""

from catalog.policy.values.destinations import ExternalDestination
from catalog.policy.values.edge import EdgeChain, EdgeHost
from catalog.policy.values.inbound import InboundPort
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.outside import OutsideHost, OutsideRange, OutsideRoute
from catalog.store.settings import METHOD_OVERRIDE_HEADERS, DenialReasons, MethodOverrides
from meshwright.mesh.names import Port, TrustDomain
from meshwright.mesh.policies.egress import ANY_HOST
from meshwright.mesh.policies.resilience import RetryPolicy
from meshwright.mesh.service import ServiceKey, Upstream
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import reference
from meshwright.sidecars.envoy.features import order, paths
from meshwright.sidecars.envoy.routes import virtual_clusters as counting
from meshwright.sidecars.envoy.routes.actions import to_cluster
from meshwright.sidecars.envoy.routes.attempts import Attempts
from meshwright.sidecars.envoy.routes.entries import entry_routes, to_route
from meshwright.sidecars.envoy.routes.renewal import RENEWAL
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from xds.protocol.resources.resource import CLUSTER, Resource, encode

_Route = route_components_pb2.Route


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
    local = to_route("local", (), to_cluster(cluster))
    message = _configuration(names.inbound_routes(port.port), str(primary), [local])
    message.virtual_hosts[0].virtual_clusters.extend(counting.counted(port))
    for feature in order.inbound(trust_domain, denials, port):
        feature.to_routes(message)
    if overrides is MethodOverrides.REMOVE:
        # The router removes these after the rules have checked the request with all its headers.
        message.request_headers_to_remove.extend(METHOD_OVERRIDE_HEADERS)
    return encode(message, frozenset({reference(CLUSTER, cluster)}), renewal=RENEWAL)


def outbound(service: OutboundService, retry: RetryPolicy | None = None) -> Resource:
    """Return the route configuration of a service port, with one route for each entry of its table.

    If requests may take several routes, each is counted, and a rule of the Gateway API always.
    """
    itself, attempts = f"{_word(service.upstream)}:{service.upstream}", Attempts.of_service(service, retry)
    routes: list[_Route] = []
    for entry in service.table:
        made = list(entry_routes(entry, entry.chosen_by or itself, attempts))
        # A single entry has the statistics of the whole service, except a rule, because it may be for fewer.
        if len(service.table) > 1 or entry.route is not None:
            by = (source.part.by for source in entry.provenance)
            counted = names.counted_route(service.port, by, entry.request_names)
            for route in made:
                route.stat_prefix = counted
        routes += made
    message = _configuration(names.outbound_routes(service), str(service.upstream), routes)
    for feature in order.outbound(service, retry):
        feature.to_routes(message)
    clusters = {names.cluster(backend) for backend in service.backends()}
    return encode(message, frozenset(reference(CLUSTER, cluster) for cluster in clusters))


def edge(port: Port, chain: EdgeChain, retry: RetryPolicy | None = None) -> Resource:
    """Return the route configuration of requests at a gateway's port, with a virtual host for each name."""
    attempts = Attempts(mesh=retry, farther=chain.fails_over)
    message = route_pb2.RouteConfiguration(
        name=names.edge_routes(port, chain),
        virtual_hosts=[_edge_host(port, chain, host, attempts) for host in chain.hosts or ()],
        # A client names the port in the header Host if it is not the scheme's own.
        ignore_port_in_host_matching=True,
    )
    for feature in order.edge(chain, retry):
        feature.to_routes(message)
    clusters = {names.cluster(backend) for backend in chain.backends()}
    return encode(message, frozenset(reference(CLUSTER, cluster) for cluster in clusters))


def _edge_host(
    port: Port, chain: EdgeChain, host: EdgeHost, attempts: Attempts
) -> route_components_pb2.VirtualHost:
    shown = host.hostname or "*"
    routes: list[_Route] = []
    for entry in host.table:
        made = list(entry_routes(entry, entry.chosen_by or shown, attempts))
        by = (source.part.by for source in entry.provenance)
        for route in made:
            route.stat_prefix = names.counted_route(port, by, entry.request_names)
        routes += made
    return route_components_pb2.VirtualHost(
        name=names.edge_host(chain, shown), domains=[shown], routes=routes
    )


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
        to_route(f"egress:{host.name}", matches, to_cluster(_way_out(port, route)))
        for route in host.routes
        for matches in (
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


def _word(upstream: Upstream) -> str:
    return "service" if isinstance(upstream, ServiceKey) else "host"


def _configuration(name: str, host: str, routes: list[_Route]) -> route_pb2.RouteConfiguration:
    every = route_components_pb2.VirtualHost(name=host, domains=["*"], routes=routes)
    return route_pb2.RouteConfiguration(name=name, virtual_hosts=[every])
