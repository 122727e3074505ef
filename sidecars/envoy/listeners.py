"""Listeners (LDS): one for each direction in transparent interception, one per address in explicit.

No two filter chains of a listener have equal matches: inbound there is one chain per port, outbound one per
service port with addresses that the catalog gives to no other. A listener without chains is not made.
`enable_reuse_port` is off everywhere: two proxies on one address would share its connections in silence.

No listener looks into what a client sends in order to tell protocols apart, so a protocol in which the
server speaks first is not held up: outbound chains are chosen by address, and inbound the mesh's TLS is
what the client sends first.
"""

from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.proxy import (
    InboundPort,
    InterceptionKind,
    OnlyRules,
    OutboundService,
    ProxyPolicy,
    SocketAddress,
)
from mesh.names import IpAddress
from protos.envoy.config.core.v3 import address_pb2, base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.extensions.filters.listener.original_dst.v3 import original_dst_pb2
from protos.envoy.extensions.filters.listener.tls_inspector.v3 import tls_inspector_pb2
from sidecars.envoy import chains, names, tls
from sidecars.envoy.typed import Reference, packed, reference, socket_address
from xds.resource import CLUSTER, Resource, encode

_Chain = listener_components_pb2.FilterChain
_Match = listener_components_pb2.FilterChainMatch
_ListenerFilter = listener_components_pb2.ListenerFilter

_EVERYWHERE: Final = IpAddress("0.0.0.0")  # noqa: S104 - redirected connections arrive at any local address


def listeners(policy: ProxyPolicy) -> tuple[Resource, ...]:
    """Return all listeners of a proxy."""
    match policy.interception:
        case InterceptionKind.TRANSPARENT:
            return (*_transparent_inbound(policy), *_transparent_outbound(policy))
        case InterceptionKind.EXPLICIT:
            return (*_explicit_inbound(policy), *_explicit_outbound(policy))


def is_open(port: InboundPort) -> bool:
    """Say whether an inbound port has a filter chain.

    A TCP port that admits nobody has none: there is no way to say no but by closing the connection, and
    that happens soonest here. An HTTP port always has one, and answers 403.
    """
    return port.protocol.is_http or port.access != OnlyRules()


def _transparent_inbound(policy: ProxyPolicy) -> list[Resource]:
    open_ports = [each for each in policy.inbound if is_open(each)]
    if not open_ports:
        return []
    found = [_inbound_chain(policy, each) for each in open_ports]
    message = listener_pb2.Listener(
        name=names.INBOUND_LISTENER,
        address=socket_address(SocketAddress(_EVERYWHERE, names.INBOUND_PORT)),
        traffic_direction=base_pb2.TrafficDirection.INBOUND,
        listener_filters=[_original_destination(), _tls_inspector()],
        filter_chains=[chain for chain, _ in found],
        enable_reuse_port=BoolValue(value=False),
    )
    return [encode(message, tls.references(policy).union(*(needed for _, needed in found)))]


def _explicit_inbound(policy: ProxyPolicy) -> list[Resource]:
    found: list[Resource] = []
    for port in policy.inbound:
        if port.listen is None or not is_open(port):
            continue
        chain, needed = _inbound_chain(policy, port)
        message = listener_pb2.Listener(
            name=names.listener(names.INBOUND_LISTENER, port.listen),
            address=socket_address(port.listen),
            traffic_direction=base_pb2.TrafficDirection.INBOUND,
            listener_filters=[_tls_inspector()],
            filter_chains=[chain],
            enable_reuse_port=BoolValue(value=False),
        )
        found.append(encode(message, tls.references(policy) | needed))
    return found


def _inbound_chain(policy: ProxyPolicy, port: InboundPort) -> tuple[_Chain, frozenset[Reference]]:
    filters = chains.inbound(policy, port)
    match = _Match(transport_protocol="tls")
    if policy.interception is InterceptionKind.TRANSPARENT:
        match.destination_port.CopyFrom(UInt32Value(value=port.port))
    chain = _Chain(
        name=f"inbound_{policy.primary}_{port.port}_{port.protocol}",
        filter_chain_match=match,
        transport_socket=tls.downstream(policy, port),
        filters=filters.messages,
    )
    return chain, filters.references


def _transparent_outbound(policy: ProxyPolicy) -> list[Resource]:
    found = [(_outbound_chain(each), chains.outbound(each).references) for each in policy.outbound]
    default = None
    if policy.egress:
        out = chains.to_cluster("egress", names.PASSTHROUGH_CLUSTER)
        default = _Chain(name=names.EGRESS_CHAIN, filters=out.messages)
        found.append((_loop_chain(), frozenset({reference(CLUSTER, names.BLACKHOLE_CLUSTER)})))
        found.append((default, out.references))
    if not found:
        return []
    message = listener_pb2.Listener(
        name=names.OUTBOUND_LISTENER,
        address=socket_address(SocketAddress(_EVERYWHERE, names.OUTBOUND_PORT)),
        traffic_direction=base_pb2.TrafficDirection.OUTBOUND,
        listener_filters=[_original_destination()],
        filter_chains=[chain for chain, _ in found if chain is not default],
        default_filter_chain=default,
        enable_reuse_port=BoolValue(value=False),
    )
    return [encode(message, frozenset().union(*(needed for _, needed in found)))]


def _explicit_outbound(policy: ProxyPolicy) -> list[Resource]:
    found: list[Resource] = []
    for service in policy.outbound:
        filters = chains.outbound(service)
        for where in service.listen:
            message = listener_pb2.Listener(
                name=names.listener(names.OUTBOUND_LISTENER, where),
                address=socket_address(where),
                traffic_direction=base_pb2.TrafficDirection.OUTBOUND,
                filter_chains=[_Chain(name=_outbound_name(service), filters=filters.messages)],
                enable_reuse_port=BoolValue(value=False),
            )
            found.append(encode(message, filters.references))
    return found


def _outbound_chain(service: OutboundService) -> _Chain:
    return _Chain(
        name=_outbound_name(service),
        filter_chain_match=_Match(
            destination_port=UInt32Value(value=service.port),
            prefix_ranges=[_single(address) for address in service.addresses],
        ),
        filters=chains.outbound(service).messages,
    )


def _loop_chain() -> _Chain:
    """End what was sent to the listener itself: the way out would lead back to it, for ever."""
    return _Chain(
        name=names.LOOP_CHAIN,
        filter_chain_match=_Match(destination_port=UInt32Value(value=names.OUTBOUND_PORT)),
        filters=chains.to_cluster("loop", names.BLACKHOLE_CLUSTER).messages,
    )


def _outbound_name(service: OutboundService) -> str:
    return f"outbound_{service.service}_{service.port}_{service.protocol}"


def _single(address: IpAddress) -> address_pb2.CidrRange:
    length = 128 if ":" in address else 32
    return address_pb2.CidrRange(address_prefix=address, prefix_len=UInt32Value(value=length))


def _original_destination() -> _ListenerFilter:
    return _ListenerFilter(
        name="envoy.filters.listener.original_dst", typed_config=packed(original_dst_pb2.OriginalDst())
    )


def _tls_inspector() -> _ListenerFilter:
    return _ListenerFilter(
        name="envoy.filters.listener.tls_inspector", typed_config=packed(tls_inspector_pb2.TlsInspector())
    )
