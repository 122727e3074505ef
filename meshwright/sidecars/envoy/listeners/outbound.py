"""Listeners for a workload's own calls: a chain per service port, independent of the caller."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.policy.values.interception import InterceptionKind, SocketAddress
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.outside import OutsidePort
from catalog.policy.values.proxy import ReachableServices, services
from catalog.policy.values.terms import AccessLogPolicy, MeshTerms
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.values.cached_hash import SharedTuple
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import reference, socket_address
from meshwright.sidecars.envoy.listeners import chains
from meshwright.sidecars.envoy.listeners import listener as listeners
from meshwright.sidecars.envoy.listeners import outside as outside_listeners
from meshwright.sidecars.envoy.listeners.chain_names import outbound_chain
from protos.envoy.config.core.v3 import address_pb2, base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from xds.protocol.resources.resource import CLUSTER, Reference, Resource, encode

_Chain = listener_components_pb2.FilterChain
_Match = listener_components_pb2.FilterChainMatch
_Filter = listener_components_pb2.Filter


_IPV4: Final = 4
_IPV6: Final = 6

CHAINS: Final = 8192
"""Number of cached chains: a listener with a thousand chains differs from the next version by one or two."""


@dataclass(frozen=True, slots=True)
class OutboundInputs:
    """The inputs of outbound listeners, without the identity of the proxy.

    `ipv6`: calls to IPv6 addresses are captured. The other fields are as in ProxyPolicy.
    """

    interception: InterceptionKind
    ipv6: bool
    terms: MeshTerms
    reachable: tuple[ReachableServices, ...]
    passthrough: bool = False
    closed: SharedTuple[SocketAddress] = field(default_factory=SharedTuple)
    outside: tuple[OutsidePort, ...] = ()

    @property
    def services(self) -> tuple[OutboundService, ...]:
        """Return the ports of services that the workload may call, sorted."""
        return services(self.reachable)

    @property
    def leaves(self) -> bool:
        """Return whether calls may go to their original destination, so that forbidden ones need a chain."""
        return self.passthrough or bool(self.outside)


def outbound(calls: OutboundInputs, logs: AccessLogPolicy | None = None) -> tuple[Resource, ...]:
    """Return the outbound listeners.

    `logs` (access logs) is a separate argument, because it is a separate unit of policy.
    """
    calls = _logged(calls, logs)
    match calls.interception:
        case InterceptionKind.TRANSPARENT:
            return tuple(_transparent_outbound(calls))
        case InterceptionKind.EXPLICIT:
            return tuple(_explicit_outbound(calls))
        case InterceptionKind.EDGE:
            return ()


def _logged(calls: OutboundInputs, logs: AccessLogPolicy | None) -> OutboundInputs:
    return calls if logs is None else replace(calls, terms=replace(calls.terms, logs=logs))


def chain_by_chain(calls: OutboundInputs, logs: AccessLogPolicy | None = None) -> Iterator[None]:
    """Make the filter chains of services in advance, up to the size of the cache."""
    calls = _logged(calls, logs)
    if calls.interception is InterceptionKind.TRANSPARENT:
        for service in calls.services[:CHAINS]:
            for family in (_IPV4, _IPV6) if calls.ipv6 else (_IPV4,):
                _service_chain(calls.terms, service, family)
            yield None


def _transparent_outbound(calls: OutboundInputs) -> list[Resource]:
    sockets = listeners.sockets(names.OUTBOUND_LISTENER, names.OUTBOUND_PORT, ipv6=calls.ipv6)
    made = (_outbound_listener(calls, socket) for socket in sockets)
    return [resource for resource in made if resource is not None]


def _outbound_listener(calls: OutboundInputs, at: listeners.Socket) -> Resource | None:
    """Return the outbound listener for the address family of a socket; None without any chain."""
    family = _family(at.where.address)
    result: list[tuple[bytes, frozenset[Reference]]] = []
    chosen = (_service_chain(calls.terms, service, family) for service in calls.services)
    result.extend(item for item in chosen if item is not None)
    if calls.leaves:
        nowhere = frozenset({reference(CLUSTER, names.BLACKHOLE_CLUSTER), *chains.written(calls.terms)})
        shut = (_loop_chain(calls.terms), *_closed_chains(calls, family))
        result += [(_written(filter_chain), nowhere) for filter_chain in shut]
        ways = outside_listeners.chains_out(calls.terms, calls.outside, family)
        result += [(_written(chain), needed) for chain, needed in ways]
    default = None
    if calls.passthrough:
        out = chains.to_cluster(calls.terms, "egress", names.PASSTHROUGH_CLUSTER)
        default = _Chain(name=names.EGRESS_CHAIN, filters=out.messages)
        # The default chain is not in the list of chains, so only its references are added.
        result.append((b"", out.references))
    if not result:
        return None
    by_name = (service.port for service in calls.services if service.reads_tls)
    inspectors = outside_listeners.inspectors(calls.outside, by_name)
    message = listener_pb2.Listener(
        traffic_direction=base_pb2.TrafficDirection.OUTBOUND,
        listener_filters=[listeners.original_destination(), *inspectors],
        default_filter_chain=default,
        enable_reuse_port=BoolValue(value=False),
        # A client that waits for the server to speak first must get a chain after the timeout of the
        # inspectors.
        continue_on_listener_filters_timeout=bool(inspectors),
    )
    # Merging appends repeated fields, so cached chains are inserted without being built and encoded again.
    message.MergeFromString(b"".join(chain for chain, _ in result))
    return listeners.bound(message, at, frozenset().union(*(needed for _, needed in result)))


@lru_cache(CHAINS)
def _service_chain(
    terms: MeshTerms, service: OutboundService, family: int
) -> tuple[bytes, frozenset[Reference]] | None:
    """Return the encoded chains of a service for an address family, with the references.

    None if the service has no address of the family.
    """
    addresses = [address for address in service.addresses if _family(address) == family]
    if not addresses:
        return None
    written, needed = [], set[Reference]()
    for server_names, filters in chains.outbound(terms, service):
        chain = _outbound_chain(service, server_names, filters)
        chain.filter_chain_match.destination_port.value = service.port
        chain.filter_chain_match.prefix_ranges.extend(map(_single, addresses))
        written.append(_written(chain))
        needed |= filters.references
    return b"".join(written), frozenset(needed)


def _written(chain: _Chain) -> bytes:
    """Return an encoded listener with only this chain.

    Concatenated, such bytes are a listener with all chains.
    """
    return listener_pb2.Listener(filter_chains=[chain]).SerializeToString(deterministic=True)


def _explicit_outbound(calls: OutboundInputs) -> list[Resource]:
    resources: list[Resource] = []
    for service in calls.services:
        ways = list(chains.outbound(calls.terms, service))
        needed = frozenset().union(*(filters.references for _, filters in ways))
        for where in service.listen:
            message = listener_pb2.Listener(
                name=names.listener(names.OUTBOUND_LISTENER, where),
                address=socket_address(where),
                traffic_direction=base_pb2.TrafficDirection.OUTBOUND,
                listener_filters=[listeners.tls_inspector()] if service.reads_tls else [],
                filter_chains=[_outbound_chain(service, *way) for way in ways],
                enable_reuse_port=BoolValue(value=False),
            )
            resources.append(encode(message, needed))
    return resources


def _outbound_chain(service: OutboundService, server_names: Iterable[str], filters: chains.Filters) -> _Chain:
    """Return a chain for connections to a service that ask for one of these names; without names for all."""
    result = _Chain(
        name=outbound_chain(service.upstream, service.port, service.protocol), filters=filters.messages
    )
    if asked := list(server_names):
        result.filter_chain_match.server_names.extend(asked)
        result.filter_chain_match.transport_protocol = "tls"
    return result


def _loop_chain(terms: MeshTerms) -> _Chain:
    """Return the chain for closing calls to the listener itself, which would otherwise loop for ever."""
    return _Chain(
        name=names.LOOP_CHAIN,
        filter_chain_match=_Match(destination_port=UInt32Value(value=names.OUTBOUND_PORT)),
        filters=chains.to_cluster(terms, "loop", names.BLACKHOLE_CLUSTER).messages,
    )


def _closed_chains(calls: OutboundInputs, family: int) -> Iterator[_Chain]:
    """Yield, by port, the chains for closing calls to forbidden services of the mesh.

    Envoy matches the port first, so a chain for all ports would never be used for a port with separate
    chains.
    """
    by_port: dict[Port, list[IpAddress]] = {}
    for address in calls.closed:
        if _family(address.address) == family:
            by_port.setdefault(address.port, []).append(address.address)
    for port, addresses in sorted(by_port.items()):
        yield _Chain(
            name=f"{names.CLOSED_CHAIN}_{port}",
            filter_chain_match=_Match(
                destination_port=UInt32Value(value=port), prefix_ranges=map(_single, addresses)
            ),
            filters=chains.to_cluster(calls.terms, "closed", names.BLACKHOLE_CLUSTER).messages,
        )


def _family(address: IpAddress) -> int:
    return _IPV6 if ":" in address else _IPV4


def _single(address: IpAddress) -> address_pb2.CidrRange:
    length = 128 if _family(address) == _IPV6 else 32
    return address_pb2.CidrRange(address_prefix=address, prefix_len=UInt32Value(value=length))
