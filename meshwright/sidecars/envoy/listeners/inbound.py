"""Listeners for calls to the workload: one chain per port, and on TCP ports one more for each caller."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache

from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.policy.values.inbound import InboundPort, OnlyRules, admitted
from catalog.policy.values.interception import InterceptionKind
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.policies.callers import EncryptedRange, IpRange
from meshwright.mesh.values.cached_hash import SharedTuple
from meshwright.mesh.workload import Capture
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import cidr, socket_address
from meshwright.sidecars.envoy.listeners import chains
from meshwright.sidecars.envoy.listeners import listener as listeners
from meshwright.sidecars.envoy.security import tls
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from xds.protocol.resources.resource import Reference, Resource, encode

_Chain = listener_components_pb2.FilterChain
_Match = listener_components_pb2.FilterChainMatch
_Filter = listener_components_pb2.Filter
_ListenerFilter = listener_components_pb2.ListenerFilter


def inbound(policy: ProxyPolicy) -> tuple[Resource, ...]:
    """Return the listeners for calls to the workload; the outbound part of the policy is not used."""
    match policy.interception:
        case InterceptionKind.TRANSPARENT:
            return tuple(_transparent_inbound(policy))
        case InterceptionKind.EXPLICIT:
            return tuple(_explicit_inbound(policy))
        case InterceptionKind.EDGE:
            return ()


def is_open(port: InboundPort) -> bool:
    """Return whether an inbound port has a filter chain.

    A TCP port without admitted callers has none: the only refusal is to close the connection, which happens
    soonest without a chain. An HTTP port always has a chain, and answers 403.
    """
    return port.protocol.is_http or port.access != OnlyRules()


def _transparent_inbound(policy: ProxyPolicy) -> list[Resource]:
    open_ports = [port for port in policy.inbound if is_open(port)]
    if not open_ports:
        return []
    result = [chain for open_port in open_ports for chain in _inbound_chains(policy, open_port)]
    needed = tls.references(policy.terms).union(*(item for _, item in result))
    message = listener_pb2.Listener(filter_chains=[chain for chain, _ in result])
    message.MergeFrom(_transparent())
    ipv6 = policy.transparent.ipv6
    sockets = list(listeners.sockets(names.INBOUND_LISTENER, names.INBOUND_PORT, ipv6=ipv6))
    if policy.transparent.capture is Capture.TPROXY:
        sockets += listeners.sockets(names.TPROXY_LISTENER, names.TPROXY_PORT, ipv6=ipv6, transparent=True)
    return [listeners.bound(message, socket, needed) for socket in sockets]


@cache
def _transparent() -> listener_pb2.Listener:
    """Return the common part of listeners for redirected calls, to be merged into each."""
    return listener_pb2.Listener(
        traffic_direction=base_pb2.TrafficDirection.INBOUND,
        listener_filters=[listeners.original_destination(), listeners.tls_inspector()],
        enable_reuse_port=BoolValue(value=False),
    )


def _explicit_inbound(policy: ProxyPolicy) -> list[Resource]:
    resources: list[Resource] = []
    for port in policy.inbound:
        if port.listen is None or not is_open(port):
            continue
        chains_here = list(_inbound_chains(policy, port))
        message = listener_pb2.Listener(
            name=names.listener(names.INBOUND_LISTENER, port.listen),
            address=socket_address(port.listen),
            traffic_direction=base_pb2.TrafficDirection.INBOUND,
            listener_filters=[listeners.tls_inspector()],
            filter_chains=[chain for chain, _ in chains_here],
            enable_reuse_port=BoolValue(value=False),
        )
        resources.append(
            encode(message, tls.references(policy.terms).union(*(item for _, item in chains_here)))
        )
    return resources


def _inbound_chains(policy: ProxyPolicy, port: InboundPort) -> Iterator[tuple[_Chain, frozenset[Reference]]]:
    """Yield the filter chains of an inbound port.

    The common chain, then the chains of single callers, and of networks.
    """
    yield _inbound_chain(policy, port)
    for caller in chains.own_chains(port):
        yield _inbound_chain(policy, port, caller)
    if ranges := admitted(port.access, IpRange):
        yield _plain_chain(policy, port, ranges)
    if encrypted := admitted(port.access, EncryptedRange):
        yield from _without_proof(policy, port, encrypted)


def _without_proof(
    policy: ProxyPolicy, port: InboundPort, ranges: Iterable[EncryptedRange]
) -> Iterator[tuple[_Chain, frozenset[Reference]]]:
    """Yield the filter chains for TLS callers from an admitted network, without a certificate.

    Envoy matches the server name before the client's address, and never goes back to a less specific name.
    Therefore every distinguished name gets the common chain as well. At the names that callers of the mesh
    use, certificates are requested, and a caller with a certificate of the mesh is judged by the certificate.
    """
    by_name = names_and_ranges(ranges, port.mesh_names)
    named = tuple(sorted({*port.mesh_names, *(name for name in by_name if name)}))
    if named:
        chain, references = _inbound_chain(policy, port)
        chain.name += "_named"
        chain.filter_chain_match.server_names.extend(named)
        yield chain, references
    # Names with the same networks share a chain, so that an IngressBackend with many names stays small.
    alike: dict[tuple[bool, tuple[IpRange, ...]], list[str]] = {}
    for name, near in by_name.items():
        alike.setdefault((name in port.mesh_names, near), []).append(name)
    for number, ((asked, near), there) in enumerate(sorted(alike.items())):
        chain, references = _plain_chain(policy, port, near)
        chain.name = f"{_chain_name(policy, port)}_encrypted_{number}"
        chain.filter_chain_match.transport_protocol = "tls"
        chain.filter_chain_match.server_names.extend(item for item in there if item)
        chain.transport_socket.CopyFrom(tls.without_proof(policy.terms, requested=asked))
        yield chain, references


def names_and_ranges(
    ranges: Iterable[EncryptedRange], others: Iterable[str]
) -> Mapping[str, tuple[IpRange, ...]]:
    """Return the networks from which each server name may be used without a certificate.

    "" is any other name.

    The names are the server names of the ranges, and `others`. Names without any network are left out.
    """
    by_names: dict[tuple[str, ...], set[IpRange]] = {}
    for encrypted_range in ranges:
        by_names.setdefault(encrypted_range.server_names, set()).add(encrypted_range.network)
    # All ranges of an IngressBackend share its names, so equal sets of networks are computed once and shared.
    wanted = [(frozenset(asked), networks) for asked, networks in by_names.items()]
    known: dict[tuple[bool, ...], SharedTuple[IpRange]] = {}
    near: dict[str, SharedTuple[IpRange]] = {}
    for name in sorted({"", *others, *(name for asked in by_names for name in asked)}):
        admitting = tuple(not asked or _is_one(name, asked) for asked, _ in wanted)
        if admitting not in known:
            there = (networks for (_, networks), admits in zip(wanted, admitting, strict=True) if admits)
            known[admitting] = SharedTuple(sorted(set().union(*there)))
        near[name] = known[admitting]
    return {name: networks for name, networks in near.items() if networks}


def _is_one(name: str, names: AbstractSet[str]) -> bool:
    """Return whether a name is in a set of names, or matches a wildcard of the set (`*.shop.example`)."""
    return name in names or any(
        f"*{name[at:]}" in names for at, character in enumerate(name) if character == "."
    )


def _inbound_chain(
    policy: ProxyPolicy, port: InboundPort, caller: ServiceIdentity | None = None
) -> tuple[_Chain, frozenset[Reference]]:
    filters = chains.inbound(policy, port, caller)
    chain = _Chain(
        name=_chain_name(policy, port),
        filter_chain_match=_Match(transport_protocol="tls", destination_port=_arriving(policy, port)),
        transport_socket=tls.downstream(policy.terms, port, caller),
        filters=filters.messages,
    )
    if caller is not None:
        chain.name += f"_{caller}"
        chain.filter_chain_match.server_names.append(f"*.{names.caller(caller, policy.trust_domain)}")
    return chain, filters.references


def _plain_chain(
    policy: ProxyPolicy, port: InboundPort, ranges: Iterable[IpRange]
) -> tuple[_Chain, frozenset[Reference]]:
    """Return the filter chain for plaintext callers from an admitted network; others are refused.

    As with the TLS handshake on TCP ports this is a second check, because the rules in the chain check again.
    """
    filters = chains.inbound_plain(policy, port)
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
    """Return the original port of a connection, for listeners with connections for all ports."""
    transparent = policy.interception is InterceptionKind.TRANSPARENT
    return UInt32Value(value=port.port) if transparent else None
