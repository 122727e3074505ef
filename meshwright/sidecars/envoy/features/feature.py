"""What a feature of HTTP is: what it adds to a connection manager, and to the route configuration behind."""

from catalog.policy.values.terms import MeshTerms
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)


class Feature:
    """One thing that is done with requests; its fields are the part of a port's or service's policy it needs.

    It adds to messages that others have added to: a field is one feature's alone, an entry of a list stands
    behind those of the features before it. By default it adds nothing. It is a frozen value: what equal ones
    add to a connection manager is made once, whoever's that is.
    """

    __slots__ = ()

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add filters, or settings; `terms` are what holds for all traffic of the mesh.

        It is part of a listener, which drains the connections of a filter chain that changes: what changes
        with rules and routes belongs into their configuration.
        """

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Add to the one virtual host, which has all its routes, or configure filters for it."""
