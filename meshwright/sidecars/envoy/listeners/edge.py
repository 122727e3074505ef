"""Listeners of a gateway's ports: one for each address of the proxy's workload, with the same filter chains.

The proxy selects a filter chain by the server name in TLS, and closes connections that fit none. A port has
either one chain in plain text, or chains for TLS.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value, UInt64Value

from catalog.policy.values.edge import EdgeChain, EdgePort
from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.policies.client_traffic import ClientSettings
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.common_messages import packed, reference, socket_address
from meshwright.sidecars.envoy.features import order
from meshwright.sidecars.envoy.listeners import chains
from meshwright.sidecars.envoy.listeners.connection_manager import connection_manager
from meshwright.sidecars.envoy.listeners.listener import proxy_protocol, tls_inspector
from meshwright.sidecars.envoy.rules import rate_services, rates
from meshwright.sidecars.envoy.security import tls
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.extensions.filters.network.connection_limit.v3 import connection_limit_pb2
from xds.protocol.resources.resource import CLUSTER, ROUTE, SECRET, Reference, Resource, encode

_Chain = listener_components_pb2.FilterChain
_Filter = listener_components_pb2.Filter
_CONNECTION_LIMIT: Final = "envoy.filters.network.connection_limit"


def edge(terms: MeshTerms, port: EdgePort) -> tuple[Resource, ...]:
    """Return the listeners of a gateway's port."""
    made = [_chain(terms, port, chain) for chain in port.chains]
    needed: frozenset[Reference] = frozenset().union(*(references for _, references in made))
    by_name = any(chain.tls is not None for chain in port.chains)
    proxied = [proxy_protocol()] if port.settings.proxy_protocol else []
    return tuple(
        encode(
            listener_pb2.Listener(
                name=names.listener(names.EDGE_LISTENER, where),
                address=socket_address(where),
                traffic_direction=base_pb2.TrafficDirection.INBOUND,
                # A client that sends no hello of TLS is closed at the end of the inspector's timeout.
                listener_filters=[*proxied, *([tls_inspector()] if by_name else [])],
                filter_chains=[chain for chain, _ in made],
                per_connection_buffer_limit_bytes=UInt32Value(value=port.settings.buffer_bytes),
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
        made.transport_socket_connect_timeout.CopyFrom(duration(chain.settings.timeouts.handshake))
    needed = [reference(SECRET, names.edge_certificate(secret)) for secret in shown]
    if chain.tls.clients is not None:
        needed.append(reference(SECRET, names.client_authorities(port.gateway, port.port)))
    return made, filters.references.union(needed)


def _filters(terms: MeshTerms, port: EdgePort, chain: EdgeChain) -> chains.Filters:
    limits = tuple(_limits(port, chain.settings))
    behind = _connections(terms, port, chain) if chain.hosts is None else _requests(terms, port, chain)
    asked = (reference(CLUSTER, names.rate_limit_cluster(it.server)) for it in chain.rate_services)
    return chains.Filters((*limits, *behind.messages), behind.references.union(asked))


def _limits(port: EdgePort, settings: ClientSettings) -> Iterator[_Filter]:
    """Yield the filters for new connections, before TLS: the number of open ones, then their rates."""
    stat_prefix = f"edge.{port.port}"
    if settings.connections is not None:
        limit = connection_limit_pb2.ConnectionLimit(
            stat_prefix=stat_prefix, max_connections=UInt64Value(value=settings.connections)
        )
        yield _Filter(name=_CONNECTION_LIMIT, typed_config=packed(limit))
    rate_limits = settings.rates.limits
    if rate_limits.connections is not None:
        yield rates.of_connections(stat_prefix, rate_limits.connections)
    if rate_limits.counted_connections is not None:
        yield rate_services.of_connections(stat_prefix, rate_limits.counted_connections)


def _connections(terms: MeshTerms, port: EdgePort, chain: EdgeChain) -> chains.Filters:
    idle = chain.settings.timeouts.idle
    own = terms if idle is None else replace(terms, long_lived=replace(terms.long_lived, tcp_idle=idle))
    shares = () if chain.entry is None else chain.entry.shares
    stat_prefix = names.edge_connections(port.port, chain)
    return chains.to_clusters(own, stat_prefix, shares, tries=chains.tries(terms.resilience.retry))


def _requests(terms: MeshTerms, port: EdgePort, chain: EdgeChain) -> chains.Filters:
    route = names.edge_routes(port.port, chain)
    manager = connection_manager(route, terms, None, order.edge(chain))
    return chains.Filters((manager,), frozenset({reference(ROUTE, route), *chains.report_clusters(terms)}))
