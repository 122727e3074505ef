"""Egress through the outbound listener: chains and inspectors for Egress objects.

Envoy matches a connection's port first, then the narrowest range with its address, then the TLS server name,
and never goes back a step. Therefore a service of the mesh, which is a single address, precedes every range,
and a range includes all permissions of wider ranges (`catalog.policy.values.outside`).

A client's bytes are inspected only on ports where they decide. If the client there waits for the server to
speak first, Envoy gives up after 15 s and chooses a chain without the bytes.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from ipaddress import ip_network
from typing import Final

from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.outside import OutsidePort, OutsideRange
from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.names import Port
from meshwright.mesh.policies.egress import ANY_HOST
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import packed, reference
from meshwright.sidecars.envoy.features import order
from meshwright.sidecars.envoy.listeners import chains
from meshwright.sidecars.envoy.listeners import listener as listeners
from meshwright.sidecars.envoy.listeners.connection_manager import connection_manager
from protos.envoy.config.core.v3 import address_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2
from protos.envoy.extensions.filters.listener.http_inspector.v3 import http_inspector_pb2
from protos.envoy.type.v3 import range_pb2
from xds.protocol.resources.resource import ROUTE, Reference

_Chain = listener_components_pb2.FilterChain
_Match = listener_components_pb2.FilterChainMatch
_Disabled = listener_components_pb2.ListenerFilterChainMatchPredicate
_ListenerFilter = listener_components_pb2.ListenerFilter

_HTTP: Final = ("http/1.0", "http/1.1", "h2c")
"""Names of plaintext HTTP in Envoy's inspector."""


def chains_out(
    terms: MeshTerms, ports: Iterable[OutsidePort], family: int
) -> Iterator[tuple[_Chain, frozenset[Reference]]]:
    """Yield the egress chains for an address family, each with the references to resources."""
    for port in ports:
        for outside_range in port.ranges:
            networks = [
                network for network in outside_range.networks if ip_network(network).version == family
            ]
            if networks or not outside_range.networks:
                yield from _range_chains(terms, port, outside_range, networks)


def inspectors(ports: Iterable[OutsidePort], by_name: Iterable[Port] = ()) -> tuple[_ListenerFilter, ...]:
    """Return the listener filters for inspecting a client's bytes, each only for the necessary ports.

    `by_name` are ports of the mesh whose connections have filter chains by server name.
    """
    those = tuple(ports)
    filters = []
    if tls := sorted({*by_name, *(outside_port.port for outside_port in those if outside_port.reads_tls)}):
        filters.append(_only_on(listeners.tls_inspector(), tls))
    if http := [outside_port.port for outside_port in those if outside_port.told_apart]:
        filters.append(_only_on(_http_inspector(), http))
    return tuple(filters)


def _range_chains(
    terms: MeshTerms, port: OutsidePort, outside_range: OutsideRange, networks: list[str]
) -> Iterator[tuple[_Chain, frozenset[Reference]]]:
    out = chains.to_cluster(terms, f"egress.{port.port}", names.PASSTHROUGH_CLUSTER)
    if outside_range.connections:
        yield (
            _Chain(
                name=names.outside_chain("tcp", port.port, outside_range),
                filter_chain_match=_match(port.port, networks),
                filters=out.messages,
            ),
            out.references,
        )
    if outside_range.server_names:
        match = _match(port.port, networks)
        match.transport_protocol = "tls"
        match.server_names.extend(
            server_name for server_name in outside_range.server_names if server_name != ANY_HOST
        )
        name = names.outside_chain("https", port.port, outside_range)
        yield _Chain(name=name, filter_chain_match=match, filters=out.messages), out.references
    if outside_range.hosts:
        match = _match(port.port, networks)
        match.transport_protocol = "raw_buffer"
        match.application_protocols.extend(_HTTP if port.told_apart else ())
        route = names.outside_routes(port.port, outside_range)
        manager = connection_manager(route, terms, None, order.outside())
        name = names.outside_chain("http", port.port, outside_range)
        chain = _Chain(name=name, filter_chain_match=match, filters=[manager])
        yield chain, frozenset({reference(ROUTE, route), *chains.written(terms)})


def _match(port: Port, networks: Iterable[str]) -> _Match:
    return _Match(destination_port=UInt32Value(value=port), prefix_ranges=map(_prefix, networks))


def _prefix(network: str) -> address_pb2.CidrRange:
    address, _, length = network.partition("/")
    return address_pb2.CidrRange(address_prefix=address, prefix_len=UInt32Value(value=int(length)))


def _only_on(inspector: _ListenerFilter, ports: list[Port]) -> _ListenerFilter:
    there = [
        _Disabled(destination_port_range=range_pb2.Int32Range(start=port, end=port + 1)) for port in ports
    ]
    listener_filter = _ListenerFilter()
    listener_filter.CopyFrom(inspector)
    # Envoy requires at least two members of a set.
    any_of = there[0] if len(there) == 1 else _Disabled(or_match=_Disabled.MatchSet(rules=there))
    listener_filter.filter_disabled.CopyFrom(_Disabled(not_match=any_of))
    return listener_filter


@cache
def _http_inspector() -> _ListenerFilter:
    """Return the listener filter for detecting plaintext HTTP."""
    return _ListenerFilter(
        name="envoy.filters.listener.http_inspector", typed_config=packed(http_inspector_pb2.HttpInspector())
    )
