"""Rate limits of an inbound port: Envoy's local rate limit, which is inactive by itself.

The limits are in the route configuration, so a changed amount changes no listener. A changed limit starts
counting again. A service may count the remaining requests for all workloads together: the listener names the
service, and the route configuration has the descriptors.
"""

from dataclasses import dataclass

from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.policies.limits import RateLimits
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules import matching, rate_services, rates
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)

_STATISTICS = "inbound"


@dataclass(frozen=True, slots=True)
class Rates(Feature):
    """The rate limits of a port. The listener depends only on their presence and on the services."""

    limits: RateLimits

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the filters for request rates: the local limit, and the query of a rate limit service."""
        del terms
        if self.limits.of_requests:
            local = packed(rates.of_requests(_STATISTICS))
            manager.http_filters.add(name=rates.HTTP_FILTER, typed_config=local)
        if (counted := self.limits.counted_requests) is not None:
            asking = packed(rate_services.of_requests(counted))
            manager.http_filters.add(name=rate_services.HTTP_FILTER, typed_config=asking)

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Limit all requests, and the requests of a path by a separate route to the same destination."""
        (host,) = routes.virtual_hosts
        if (limit := self.limits.requests) is not None:
            host.typed_per_filter_config[rates.HTTP_FILTER].CopyFrom(
                packed(rates.of_requests(_STATISTICS, limit))
            )
        if (counted := self.limits.counted_requests) is not None:
            host.rate_limits.extend(rate_services.rate_limits(counted.descriptors))
        for number, route_rate in enumerate(self.limits.routes):
            route = route_components_pb2.Route()
            route.CopyFrom(host.routes[-1])
            route.name = f"limited-{number}"
            route.match.CopyFrom(
                route_components_pb2.RouteMatch(
                    safe_regex=matching.full_match(route_rate.path_regex).safe_regex
                )
            )
            if route_rate.limit is not None:
                route.typed_per_filter_config[rates.HTTP_FILTER].CopyFrom(
                    packed(rates.of_requests(_STATISTICS, route_rate.limit))
                )
            # Without its own, a route uses the limits of the virtual host.
            route.route.rate_limits.extend(rate_services.rate_limits(route_rate.descriptors))
            host.routes.insert(len(host.routes) - 1, route)
