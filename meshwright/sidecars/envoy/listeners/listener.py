"""Layout of listeners (LDS): one per direction in transparent interception, one per address in explicit.

The filter chains of a listener have different matches. Inbound there is one chain per port, and on TCP ports
one more for each caller. Outbound there is one per service port, with addresses that the catalog gives to one
service only. A listener without chains is not made. `enable_reuse_port` is always off, because two proxies on
one address would silently share its connections.

In transparent interception there is one listener for each socket in the workload's rules: for IPv4 and, if
captured, for IPv6; inbound one for REDIRECT and, if used, one more for TPROXY. They are separate listeners
instead of additional addresses, because Envoy cannot add or remove a socket (or its options) of a listener
with a port. This way a workload changes its interception without a restart. The TPROXY listener is
`transparent`: the socket has IP_TRANSPARENT, which needs CAP_NET_ADMIN or CAP_NET_RAW. An Envoy without both
rejects this listener and keeps the others.

Listeners never inspect a client's bytes to detect the protocol, so protocols in which the server speaks first
are not delayed. Outbound chains are selected by address, and inbound clients begin with the mesh's TLS. Only
plaintext clients from outside of the mesh must speak first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.interception import SocketAddress
from meshwright.mesh.names import IpAddress, Port
from meshwright.sidecars.envoy.common_messages import packed, socket_address
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.extensions.filters.listener.original_dst.v3 import original_dst_pb2
from protos.envoy.extensions.filters.listener.proxy_protocol.v3 import proxy_protocol_pb2
from protos.envoy.extensions.filters.listener.tls_inspector.v3 import tls_inspector_pb2
from xds.protocol.resources.resource import Reference, Resource, encode

_ListenerFilter = listener_components_pb2.ListenerFilter

_EVERYWHERE: Final = (IpAddress("0.0.0.0"), IpAddress("::"))  # noqa: S104 - redirected connections arrive at any


@dataclass(frozen=True, slots=True)
class Socket:
    """Name and socket address of an intercepting listener."""

    name: str
    where: SocketAddress
    transparent: bool = False


def sockets(name: str, port: Port, *, ipv6: bool, transparent: bool = False) -> Iterator[Socket]:
    """Yield the sockets of one port: for IPv4 and, if captured, for IPv6."""
    for address in _EVERYWHERE if ipv6 else _EVERYWHERE[:1]:
        yield Socket(f"{name}-ipv6" if ":" in address else name, SocketAddress(address, port), transparent)


def bound(message: listener_pb2.Listener, at: Socket, needed: frozenset[Reference]) -> Resource:
    """Return a listener with a name and a socket."""
    made = listener_pb2.Listener(name=at.name, address=socket_address(at.where))
    made.MergeFrom(message)
    if at.transparent:
        made.transparent.CopyFrom(BoolValue(value=True))
    return encode(made, needed)


@cache
def original_destination() -> _ListenerFilter:
    """Return the listener filter for restoring the original destination of a redirected connection."""
    return _ListenerFilter(
        name="envoy.filters.listener.original_dst", typed_config=packed(original_dst_pb2.OriginalDst())
    )


@cache
def tls_inspector() -> _ListenerFilter:
    """Return the listener filter for reading the server name from a client's TLS hello."""
    return _ListenerFilter(
        name="envoy.filters.listener.tls_inspector", typed_config=packed(tls_inspector_pb2.TlsInspector())
    )


@cache
def proxy_protocol() -> _ListenerFilter:
    """Return the listener filter for reading the client's address from a header of the PROXY protocol.

    Connections without such a header are closed. Addresses in additional fields (TLVs) are not passed on.
    """
    return _ListenerFilter(
        name="envoy.filters.listener.proxy_protocol", typed_config=packed(proxy_protocol_pb2.ProxyProtocol())
    )
