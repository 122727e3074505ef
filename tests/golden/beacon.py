"""A listener that shows the number of the last published round, so that a test sees that an Envoy has it.

The number is in a route configuration, the last kind of resource that Envoy gets.
"""

from catalog.policy.values.interception import SocketAddress
from meshwright.mesh.names import IpAddress, Port
from meshwright.sidecars.envoy.common_messages import OVER_ADS, packed, reference, socket_address
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.http.router.v3 import router_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from xds.protocol.resources.resource import ROUTE, Resource, encode

BEACON_PORT = 15999


def beacon(address: IpAddress, number: int) -> tuple[Resource, Resource]:
    """Return a listener that answers with the number of the round, from a route configuration."""
    manager = hcm_pb2.HttpConnectionManager(
        stat_prefix="beacon",
        rds=hcm_pb2.Rds(config_source=OVER_ADS, route_config_name="beacon"),
        http_filters=[
            hcm_pb2.HttpFilter(name="envoy.filters.http.router", typed_config=packed(router_pb2.Router()))
        ],
    )
    chain = listener_components_pb2.FilterChain(
        filters=[
            listener_components_pb2.Filter(
                name="envoy.filters.network.http_connection_manager", typed_config=packed(manager)
            )
        ]
    )
    listener = listener_pb2.Listener(
        name="beacon",
        address=socket_address(SocketAddress(address, Port(BEACON_PORT))),
        filter_chains=[chain],
    )
    body = base_pb2.DataSource(inline_string=str(number))
    route = route_components_pb2.Route(
        match=route_components_pb2.RouteMatch(prefix="/"),
        direct_response=route_components_pb2.DirectResponseAction(status=200, body=body),
    )
    host = route_components_pb2.VirtualHost(name="beacon", domains=["*"], routes=[route])
    routes = route_pb2.RouteConfiguration(name="beacon", virtual_hosts=[host])
    return encode(listener, frozenset({reference(ROUTE, "beacon")})), encode(routes, frozenset())
