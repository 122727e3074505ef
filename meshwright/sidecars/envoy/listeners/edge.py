"""Listeners of a gateway's ports: one for each address of the proxy's workload, with the same filter chains.

The proxy selects a filter chain by the server name in TLS, and closes connections that fit none. A port has
either one chain in plain text, or chains for TLS.
"""

from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.policy.values.edge import EdgeChain, EdgePort
from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import reference, socket_address
from meshwright.sidecars.envoy.features import order
from meshwright.sidecars.envoy.listeners import chains
from meshwright.sidecars.envoy.listeners.connection_manager import connection_manager
from meshwright.sidecars.envoy.listeners.listener import tls_inspector
from meshwright.sidecars.envoy.security import tls
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from xds.protocol.resources.resource import ROUTE, SECRET, Reference, Resource, encode

_BUFFER_BYTES: Final = 32 * 1024
"""Bytes that Envoy keeps for a connection of a client that reads slowly."""

_HANDSHAKE: Final = Duration(seconds=10)
"""Time for the handshake of TLS, so that slow clients do not hold connections."""

_Chain = listener_components_pb2.FilterChain


def edge(terms: MeshTerms, port: EdgePort) -> tuple[Resource, ...]:
    """Return the listeners of a gateway's port."""
    made = [_chain(terms, port, chain) for chain in port.chains]
    needed: frozenset[Reference] = frozenset().union(*(references for _, references in made))
    by_name = any(chain.tls is not None for chain in port.chains)
    return tuple(
        encode(
            listener_pb2.Listener(
                name=names.listener(names.EDGE_LISTENER, where),
                address=socket_address(where),
                traffic_direction=base_pb2.TrafficDirection.INBOUND,
                # A client that sends no hello of TLS is closed at the end of the inspector's timeout.
                listener_filters=[tls_inspector()] if by_name else [],
                filter_chains=[chain for chain, _ in made],
                per_connection_buffer_limit_bytes=UInt32Value(value=_BUFFER_BYTES),
                enable_reuse_port=BoolValue(value=False),
            ),
            needed,
        )
        for where in port.listen
    )


def _chain(terms: MeshTerms, port: EdgePort, chain: EdgeChain) -> tuple[_Chain, frozenset[Reference]]:
    filters = _filters(terms, port, chain)
    made = _Chain(name=names.edge_chain(port, chain), filters=filters.messages)
    if chain.tls is None:
        return made, filters.references
    made.filter_chain_match.transport_protocol = "tls"
    if chain.tls.server_name:
        made.filter_chain_match.server_names.append(chain.tls.server_name)
    if shown := chain.tls.certificates:
        made.transport_socket.CopyFrom(tls.edge(port, chain.tls, requests=chain.hosts is not None))
        made.transport_socket_connect_timeout.CopyFrom(_HANDSHAKE)
    needed = [reference(SECRET, names.edge_certificate(secret)) for secret in shown]
    if chain.tls.clients is not None:
        needed.append(reference(SECRET, names.client_authorities(port.gateway, port.port)))
    return made, filters.references.union(needed)


def _filters(terms: MeshTerms, port: EdgePort, chain: EdgeChain) -> chains.Filters:
    if chain.hosts is None:
        shares = () if chain.entry is None else chain.entry.shares
        return chains.to_clusters(
            terms,
            names.edge_connections(port.port, chain),
            shares,
            tries=chains.tries(terms.resilience.retry),
        )
    route = names.edge_routes(port.port, chain)
    manager = connection_manager(route, terms, None, order.edge(chain))
    return chains.Filters((manager,), frozenset({reference(ROUTE, route), *chains.report_clusters(terms)}))
