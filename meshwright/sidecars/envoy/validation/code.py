"""Checks of Envoy's code, beyond the rules of the API.

Each function checks one message type. Facts that only a proxy can know are not checked, for example whether
an address can be bound or whether a certificate's key fits.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

import re2
from google.protobuf.duration_pb2 import Duration

from meshwright.sidecars.envoy.bootstrap.bootstrap import REGEX_PROGRAM_SIZE
from meshwright.sidecars.envoy.validation.faults import Fault, Way, fault
from meshwright.specs import regexes
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.core.v3 import address_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2
from protos.envoy.type.matcher.v3 import regex_pb2

CodeCheck = Callable[[Any, Way, list[Fault]], None]

_UINT32: Final = 2**32 - 1
_MAX_SECONDS: Final = 315_576_000_000
"""Greatest number of seconds in a google.protobuf.Duration: ten thousand years."""


_ASKS_THE_DNS: Final = (
    cluster_pb2.Cluster.DiscoveryType.STRICT_DNS,
    cluster_pb2.Cluster.DiscoveryType.LOGICAL_DNS,
)
_READINGS: Final = (re2.Options.Encoding.UTF8, re2.Options.Encoding.LATIN1)
"""Encodings of expressions in older Envoys (1.38.3), and in newer ones."""


@lru_cache(4096)
def regex_fault(pattern: str) -> str:
    """Return why an Envoy would reject an expression, or an empty text; all use RE2 with its defaults."""
    if not regexes.regex_fault(pattern):
        return ""  # our own bounds are narrower, and were checked when the manifest was read
    options = re2.Options()
    options.log_errors = False
    # Proxies of both kinds may be connected, so an expression must be valid, and small enough, for both.
    for options.encoding in _READINGS:
        try:
            size = re2.compile(pattern.encode(), options).programsize
        except re2.error as error:
            return f"must be a regular expression of RE2: {error.args[0].decode(errors='replace')}"
        if size > REGEX_PROGRAM_SIZE:
            return f"must be a smaller regular expression: {size} instructions, at most {REGEX_PROGRAM_SIZE}"
    return ""


def _regex(message: regex_pb2.RegexMatcher, way: Way, faults: list[Fault]) -> None:
    problem = regex_fault(message.regex)
    if problem:
        faults.append(fault((way, "regex", None), problem, message.regex))


def _duration(message: Duration, way: Way, faults: list[Fault]) -> None:
    if message.seconds < 0 or message.nanos < 0:
        faults.append(fault(way, "must not be negative"))
    elif message.seconds > _MAX_SECONDS or message.nanos >= 10**9:
        faults.append(fault(way, f"must be at most {_MAX_SECONDS} s, with nanos below 10^9"))


def _socket_address(message: address_pb2.SocketAddress, way: Way, faults: list[Fault]) -> None:
    if not message.resolver_name and not _is_ip(message.address) and not _is_of_cluster(way):
        faults.append(_no_ip(message, way))


def _is_of_cluster(way: Way) -> bool:
    """Return whether an address is in a cluster; `_cluster` checks whether a name is allowed there."""
    while way is not None:
        way, field, _ = way
        if field == "load_assignment":
            return True
    return False


def _cluster(message: cluster_pb2.Cluster, way: Way, faults: list[Fault]) -> None:
    if message.type in _ASKS_THE_DNS or message.HasField("cluster_type"):
        return
    where: Way = (way, "load_assignment", None)
    for number, locality in enumerate(message.load_assignment.endpoints):
        for position, lb_endpoint in enumerate(locality.lb_endpoints):
            address = lb_endpoint.endpoint.address
            at = address.socket_address
            if address.HasField("socket_address") and not at.resolver_name and not _is_ip(at.address):
                here: Way = (((where, "endpoints", number), "lb_endpoints", position), "endpoint", None)
                faults.append(_no_ip(at, ((here, "address", None), "socket_address", None)))


def _no_ip(message: address_pb2.SocketAddress, way: Way) -> Fault:
    return fault((way, "address", None), "must be an IP address", message.address)


def _cidr_range(message: address_pb2.CidrRange, way: Way, faults: list[Fault]) -> None:
    try:
        longest = ip_address(message.address_prefix).max_prefixlen
    except ValueError:
        faults.append(fault((way, "address_prefix", None), "must be an IP address", message.address_prefix))
        return
    if message.prefix_len.value > longest:
        faults.append(
            fault((way, "prefix_len", None), f"must be at most {longest}", message.prefix_len.value)
        )


@lru_cache(4096)
def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text  # whether a zone exists is known where the proxy runs


def _weighted_routes(message: route_components_pb2.WeightedCluster, way: Way, faults: list[Fault]) -> None:
    total = sum(cluster.weight.value for cluster in message.clusters)
    if not message.HasField("total_weight"):
        _sum(total, (way, "clusters", None), faults)
    if total == 0:
        faults.append(fault((way, "clusters", None), "must have weights that add up to more than 0"))


def _weighted_tcp(message: tcp_proxy_pb2.TcpProxy.WeightedCluster, way: Way, faults: list[Fault]) -> None:
    _sum(sum(cluster.weight for cluster in message.clusters), (way, "clusters", None), faults)


def _sum(total: int, way: Way, faults: list[Fault]) -> None:
    if total > _UINT32:
        faults.append(fault(way, f"must have weights that add up to at most {_UINT32}", total))


def _virtual_hosts(message: route_pb2.RouteConfiguration, way: Way, faults: list[Fault]) -> None:
    hosts = message.virtual_hosts
    _different((host.name for host in hosts), (way, "virtual_hosts", None), "name", faults)
    domains = (domain.lower() for host in hosts for domain in host.domains)
    _different(domains, (way, "virtual_hosts", None), "domain", faults)


def _filter_chains(message: listener_pb2.Listener, way: Way, faults: list[Fault]) -> None:
    keys = (
        key for filter_chain in message.filter_chains for key in _match_keys(filter_chain.filter_chain_match)
    )
    _different(keys, (way, "filter_chains", None), "match", faults)


def _match_keys(match: listener_components_pb2.FilterChainMatch) -> Iterator[tuple[str, int, bytes]]:
    """Yield keys that must be unique among filter chains: a range of addresses, with all other conditions."""
    rest = listener_components_pb2.FilterChainMatch()
    rest.CopyFrom(match)
    rest.ClearField("prefix_ranges")
    other = rest.SerializeToString(deterministic=True)
    if not match.prefix_ranges:
        yield "", 0, other
    for prefix_range in match.prefix_ranges:
        yield prefix_range.address_prefix, prefix_range.prefix_len.value, other


def _different(values: Iterable[Hashable], way: Way, subject: str, faults: list[Fault]) -> None:
    for value, times in Counter(values).items():
        if times > 1:
            shown = value if isinstance(value, str) else None
            faults.append(fault(way, f"must not have the same {subject} twice", shown))


CODE: Final[dict[str, CodeCheck]] = {
    made.DESCRIPTOR.full_name: check
    for made, check in (
        (Duration, _duration),
        (address_pb2.CidrRange, _cidr_range),
        (cluster_pb2.Cluster, _cluster),
        (address_pb2.SocketAddress, _socket_address),
        (listener_pb2.Listener, _filter_chains),
        (regex_pb2.RegexMatcher, _regex),
        (route_components_pb2.WeightedCluster, _weighted_routes),
        (route_pb2.RouteConfiguration, _virtual_hosts),
        (tcp_proxy_pb2.TcpProxy.WeightedCluster, _weighted_tcp),
    )
}
