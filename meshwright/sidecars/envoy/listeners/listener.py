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
from protos.envoy.extensions.filters.listener.tls_inspector.v3 import tls_inspector_pb2
from xds.protocol.resources.resource import Reference, Resource, encode

_ListenerFilter = listener_components_pb2.ListenerFilter

_EVERYWHERE: Final = (IpAddress("0.0.0.0"), IpAddress("::"))  # noqa: S104 - redirected connections arrive at any


@dataclass(frozen=True, slots=True)
class Socket:
    """Where an intercepting listener is bound, and its name."""

    name: str
    where: SocketAddress
    transparent: bool = False


def sockets(name: str, port: Port, *, ipv6: bool, transparent: bool = False) -> Iterator[Socket]:
    """Yield the sockets of one port: of IPv4, and of IPv6 where it is captured."""
    for address in _EVERYWHERE if ipv6 else _EVERYWHERE[:1]:
        yield Socket(f"{name}-ipv6" if ":" in address else name, SocketAddress(address, port), transparent)


def bound(message: listener_pb2.Listener, at: Socket, needed: frozenset[Reference]) -> Resource:
    """Return a listener with its name and socket."""
    made = listener_pb2.Listener(name=at.name, address=socket_address(at.where))
    made.MergeFrom(message)
    if at.transparent:
        made.transparent.CopyFrom(BoolValue(value=True))
    return encode(made, needed)


@cache
def original_destination() -> _ListenerFilter:
    """Return the filter that finds out where a redirected connection was going."""
    return _ListenerFilter(
        name="envoy.filters.listener.original_dst", typed_config=packed(original_dst_pb2.OriginalDst())
    )


@cache
def tls_inspector() -> _ListenerFilter:
    """Return the filter that reads which server's name a client asks for in TLS."""
    return _ListenerFilter(
        name="envoy.filters.listener.tls_inspector", typed_config=packed(tls_inspector_pb2.TlsInspector())
    )
