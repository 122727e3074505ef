"""Listeners (LDS): one for each direction in transparent interception, one per address in explicit.

No two filter chains of a listener have equal matches: inbound there is one chain per port, and on TCP ports
one for each caller beside it, outbound one per service port with addresses that the catalog gives to no
other. A listener without chains is not made.
`enable_reuse_port` is off everywhere: two proxies on one address would share its connections in silence.

In transparent interception there is one listener for each socket that a workload's rules may lead to: IPv4's
and, where they capture it, IPv6's; inbound one for REDIRECT and, where they use TPROXY, one more beside it.
They are not further addresses of one listener, because Envoy lets none that has a port gain or lose a socket,
or an option of it: so a workload changes its interception without a restart. One for TPROXY is `transparent`:
its socket has IP_TRANSPARENT, which takes CAP_NET_ADMIN or CAP_NET_RAW; an Envoy with neither rejects it, and
keeps the others.

No listener looks into what a client sends in order to tell protocols apart, so a protocol in which the
server speaks first is not held up: outbound chains are chosen by address, and inbound the mesh's TLS is
what the client sends first. Only networks outside the mesh, which call in plain text, must speak first.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.policy.proxy import (
    InboundPort,
    InterceptionKind,
    OnlyRules,
    OutboundService,
    ProxyPolicy,
    SocketAddress,
    admitted,
)
from mesh.callers import IpRange
from mesh.identity import ServiceIdentity
from mesh.names import IpAddress, Port
from mesh.workload import Capture
from protos.envoy.config.core.v3 import address_pb2, base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.extensions.filters.listener.original_dst.v3 import original_dst_pb2
from protos.envoy.extensions.filters.listener.tls_inspector.v3 import tls_inspector_pb2
from sidecars.envoy import chains, names, tls
from sidecars.envoy.chain_names import outbound_chain
from sidecars.envoy.typed import cidr, packed, reference, socket_address
from xds.protocol.resource import CLUSTER, Reference, Resource, encode

_Chain = listener_components_pb2.FilterChain
_Match = listener_components_pb2.FilterChainMatch
_Filter = listener_components_pb2.Filter
_ListenerFilter = listener_components_pb2.ListenerFilter

_EVERYWHERE: Final = (IpAddress("0.0.0.0"), IpAddress("::"))  # noqa: S104 - redirected connections arrive at any


@dataclass(frozen=True, slots=True)
class _Socket:
    """Where an intercepting listener is bound, and its name."""

    name: str
    where: SocketAddress
    transparent: bool = False


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
    found = [chain for each in open_ports for chain in _inbound_chains(policy, each)]
    needed = tls.references(policy).union(*(each for _, each in found))
    message = listener_pb2.Listener(
        traffic_direction=base_pb2.TrafficDirection.INBOUND,
        listener_filters=[_original_destination(), _tls_inspector()],
        filter_chains=[chain for chain, _ in found],
        enable_reuse_port=BoolValue(value=False),
    )
    sockets = list(_sockets(names.INBOUND_LISTENER, names.INBOUND_PORT, policy))
    if policy.transparent.capture is Capture.TPROXY:
        sockets += _sockets(names.TPROXY_LISTENER, names.TPROXY_PORT, policy, transparent=True)
    return [_bound(message, each, needed) for each in sockets]


def _explicit_inbound(policy: ProxyPolicy) -> list[Resource]:
    found: list[Resource] = []
    for port in policy.inbound:
        if port.listen is None or not is_open(port):
            continue
        chains_here = list(_inbound_chains(policy, port))
        message = listener_pb2.Listener(
            name=names.listener(names.INBOUND_LISTENER, port.listen),
            address=socket_address(port.listen),
            traffic_direction=base_pb2.TrafficDirection.INBOUND,
            listener_filters=[_tls_inspector()],
            filter_chains=[chain for chain, _ in chains_here],
            enable_reuse_port=BoolValue(value=False),
        )
        found.append(encode(message, tls.references(policy).union(*(each for _, each in chains_here))))
    return found


def _inbound_chains(policy: ProxyPolicy, port: InboundPort) -> Iterator[tuple[_Chain, frozenset[Reference]]]:
    """Yield the filter chains of an inbound port: that of everybody, those of single callers, of networks."""
    yield _inbound_chain(policy, port)
    for caller in chains.own_chains(port):
        yield _inbound_chain(policy, port, caller)
    if ranges := admitted(port.access, IpRange):
        yield _plain_chain(policy, port, ranges)


def _inbound_chain(
    policy: ProxyPolicy, port: InboundPort, caller: ServiceIdentity | None = None
) -> tuple[_Chain, frozenset[Reference]]:
    filters = chains.inbound(policy, port, caller)
    chain = _Chain(
        name=_chain_name(policy, port),
        filter_chain_match=_Match(transport_protocol="tls", destination_port=_arriving(policy, port)),
        transport_socket=tls.downstream(policy, port, caller),
        filters=filters.messages,
    )
    if caller is not None:
        chain.name += f"_{caller}"
        chain.filter_chain_match.server_names.append(f"*.{names.caller(caller, policy.trust_domain)}")
    return chain, filters.references


def _plain_chain(
    policy: ProxyPolicy, port: InboundPort, ranges: Iterable[IpRange]
) -> tuple[_Chain, frozenset[Reference]]:
    """Return the filter chain of who calls in plain text from an admitted network; nobody else's is taken.

    Like the handshake on TCP ports this is a second lock: the rules behind it say the same.
    """
    filters = chains.inbound(policy, port)
    match = _Match(
        transport_protocol="raw_buffer",
        destination_port=_arriving(policy, port),
        source_prefix_ranges=map(cidr, ranges),
    )
    chain = _Chain(
        name=f"{_chain_name(policy, port)}_plain", filter_chain_match=match, filters=filters.messages
    )
    return chain, filters.references


def _chain_name(policy: ProxyPolicy, port: InboundPort) -> str:
    return f"inbound_{policy.primary}_{port.port}_{port.protocol}"


def _arriving(policy: ProxyPolicy, port: InboundPort) -> UInt32Value | None:
    """Return the port that a connection was for, where listeners take those for all ports."""
    transparent = policy.interception is InterceptionKind.TRANSPARENT
    return UInt32Value(value=port.port) if transparent else None


def _transparent_outbound(policy: ProxyPolicy) -> list[Resource]:
    sockets = _sockets(names.OUTBOUND_LISTENER, names.OUTBOUND_PORT, policy)
    made = (_outbound_listener(policy, each) for each in sockets)
    return [each for each in made if each is not None]


def _outbound_listener(policy: ProxyPolicy, at: _Socket) -> Resource | None:
    """Return the listener for calls to addresses of its socket's family; None where there are none."""
    family = ip_address(at.where.address).version
    found: list[tuple[_Chain, frozenset[Reference]]] = []
    for service in policy.outbound:
        addresses = [each for each in service.addresses if ip_address(each).version == family]
        if addresses:
            filters = chains.outbound(policy, service)
            found.append((_outbound_chain(service, addresses, filters.messages), filters.references))
    default = None
    if policy.passthrough:
        out = chains.to_cluster("egress", names.PASSTHROUGH_CLUSTER)
        default = _Chain(name=names.EGRESS_CHAIN, filters=out.messages)
        nowhere = frozenset({reference(CLUSTER, names.BLACKHOLE_CLUSTER)})
        found += [(chain, nowhere) for chain in (_loop_chain(), *_closed_chains(policy, family))]
        found.append((default, out.references))
    if not found:
        return None
    message = listener_pb2.Listener(
        traffic_direction=base_pb2.TrafficDirection.OUTBOUND,
        listener_filters=[_original_destination()],
        filter_chains=[chain for chain, _ in found if chain is not default],
        default_filter_chain=default,
        enable_reuse_port=BoolValue(value=False),
    )
    return _bound(message, at, frozenset().union(*(needed for _, needed in found)))


def _sockets(name: str, port: Port, policy: ProxyPolicy, *, transparent: bool = False) -> Iterator[_Socket]:
    """Yield the sockets of one port: of IPv4, and of IPv6 where it is captured."""
    for address in _EVERYWHERE if policy.transparent.ipv6 else _EVERYWHERE[:1]:
        family = ip_address(address).version
        yield _Socket(name if family == 4 else f"{name}-ipv6", SocketAddress(address, port), transparent)


def _bound(message: listener_pb2.Listener, at: _Socket, needed: frozenset[Reference]) -> Resource:
    """Return a listener with its name and socket."""
    made = listener_pb2.Listener(name=at.name, address=socket_address(at.where))
    made.MergeFrom(message)
    if at.transparent:
        made.transparent.CopyFrom(BoolValue(value=True))
    return encode(made, needed)


def _explicit_outbound(policy: ProxyPolicy) -> list[Resource]:
    found: list[Resource] = []
    for service in policy.outbound:
        filters = chains.outbound(policy, service)
        for where in service.listen:
            message = listener_pb2.Listener(
                name=names.listener(names.OUTBOUND_LISTENER, where),
                address=socket_address(where),
                traffic_direction=base_pb2.TrafficDirection.OUTBOUND,
                filter_chains=[
                    _Chain(
                        name=outbound_chain(service.upstream, service.port, service.protocol),
                        filters=filters.messages,
                    )
                ],
                enable_reuse_port=BoolValue(value=False),
            )
            found.append(encode(message, filters.references))
    return found


def _outbound_chain(
    service: OutboundService, addresses: Iterable[IpAddress], filters: Iterable[_Filter]
) -> _Chain:
    return _Chain(
        name=outbound_chain(service.upstream, service.port, service.protocol),
        filter_chain_match=_Match(
            destination_port=UInt32Value(value=service.port),
            prefix_ranges=[_single(address) for address in addresses],
        ),
        filters=filters,
    )


def _loop_chain() -> _Chain:
    """End what was sent to the listener itself: the way out would lead back to it, for ever."""
    return _Chain(
        name=names.LOOP_CHAIN,
        filter_chain_match=_Match(destination_port=UInt32Value(value=names.OUTBOUND_PORT)),
        filters=chains.to_cluster("loop", names.BLACKHOLE_CLUSTER).messages,
    )


def _closed_chains(policy: ProxyPolicy, family: int) -> Iterator[_Chain]:
    """Yield, by port, what ends calls to the mesh's services that the workload may not call.

    A port that stands in any chain is matched before addresses are, so that a chain for all ports would not
    be looked at.
    """
    by_port: dict[Port, list[IpAddress]] = {}
    for each in policy.closed:
        if ip_address(each.address).version == family:
            by_port.setdefault(each.port, []).append(each.address)
    for port, addresses in sorted(by_port.items()):
        yield _Chain(
            name=f"{names.CLOSED_CHAIN}_{port}",
            filter_chain_match=_Match(
                destination_port=UInt32Value(value=port), prefix_ranges=map(_single, addresses)
            ),
            filters=chains.to_cluster("closed", names.BLACKHOLE_CLUSTER).messages,
        )


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
