"""Listeners of a gateway's ports: one for each address of the proxy's workload, with one chain for all."""

from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.policy.values.edge import EdgePort
from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import reference, socket_address
from meshwright.sidecars.envoy.features import order
from meshwright.sidecars.envoy.listeners import chains
from meshwright.sidecars.envoy.listeners.connection_manager import connection_manager
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from xds.protocol.resources.resource import ROUTE, Resource, encode

_BUFFER_BYTES = 32 * 1024
"""Bytes that Envoy keeps for a connection of a client that reads slowly."""


def edge(terms: MeshTerms, port: EdgePort) -> tuple[Resource, ...]:
    """Return the listeners of a gateway's port, in plain text."""
    route = names.edge_routes(port.port)
    manager = connection_manager(route, terms, None, order.edge(port))
    chain = listener_components_pb2.FilterChain(name=f"edge_{port.gateway}_{port.port}", filters=[manager])
    needed = frozenset({reference(ROUTE, route), *chains.report_clusters(terms)})
    return tuple(
        encode(
            listener_pb2.Listener(
                name=names.listener(names.EDGE_LISTENER, where),
                address=socket_address(where),
                traffic_direction=base_pb2.TrafficDirection.INBOUND,
                filter_chains=[chain],
                per_connection_buffer_limit_bytes=UInt32Value(value=_BUFFER_BYTES),
                enable_reuse_port=BoolValue(value=False),
            ),
            needed,
        )
        for where in port.listen
    )
