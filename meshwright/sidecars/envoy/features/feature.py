"""Interface of an HTTP feature: additions to a connection manager and to a route configuration."""

from catalog.policy.values.terms import MeshTerms
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


class Feature:
    """One feature; its fields are the part of a port's or service's policy that it needs.

    Features add to the same messages: each field belongs to one feature, and entries of lists are appended in
    the order of features. The defaults add nothing. A feature is a frozen value, so that equal features share
    one connection manager.
    """

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add filters or settings; `terms` are the mesh-wide settings.

        The connection manager is part of a listener, whose change drains connections. Therefore all settings
        that change with rules and routes belong into the route configuration.
        """

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Add routes to the virtual hosts, or configure filters for the routes of these hosts."""
