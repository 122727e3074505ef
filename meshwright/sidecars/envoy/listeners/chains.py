"""Network filters: the handling of a connection after a listener has selected its filter chain.

Network filters decide once for each connection. An open TCP connection whose permission is withdrawn
therefore lives until its filter chain has drained (Envoy's `--drain-time-s`). HTTP is checked for each
request.

For this reason each caller of a TCP port has a separate filter chain. The chain exists as long as the caller
is admitted, and does not change with other callers or with the rules for this one, so only callers that lose
their permission are drained. The caller selects the chain by the server name in TLS, and the chain requires
the caller's certificate. A caller without such a name (a foreign proxy), or beyond the first `OWN_CHAINS` by
name, gets the port's common chain, which admits the same callers and changes with them.

On a TCP port the RBAC filter repeats the identities from the TLS context
(`meshwright.sidecars.envoy.security.tls`). The repetition costs about 50 bytes for each client and is kept,
because the two fail in opposite ways: an empty list of SANs accepts every certificate of the mesh, and rules
without a policy refuse every one. A single mistake cannot open a port.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.inbound import EveryoneInTheMesh, InboundPort, admitted, divided
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.route_actions import Share, WeightedBackend
from catalog.policy.values.terms import MeshTerms
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.policies.callers import AuthenticatedName
from meshwright.mesh.policies.resilience import RetryOn, RetryPolicy
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.clusters import outlier_detection as surviving
from meshwright.sidecars.envoy.common_messages import packed, reference
from meshwright.sidecars.envoy.features import order
from meshwright.sidecars.envoy.listeners.connection_manager import connection_manager
from meshwright.sidecars.envoy.rules import rate_services, rates, rbac
from meshwright.sidecars.envoy.telemetry import access_log
from protos.envoy.config.listener.v3 import listener_components_pb2
from protos.envoy.config.rbac.v3 import rbac_pb2
from protos.envoy.extensions.filters.network.rbac.v3 import rbac_pb2 as network_rbac_pb2
from protos.envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2
from xds.protocol.resources.resource import CLUSTER, ROUTE, Reference

OWN_CHAINS: Final = 256
"""Callers of a port with their own filter chains; the TLS context of each chain takes memory in Envoy."""

_EARLY_BYTES: Final = 64 * 1024
_Filter = listener_components_pb2.Filter
_TcpProxy = tcp_proxy_pb2.TcpProxy


@dataclass(frozen=True, slots=True)
class Filters:
    """The network filters of a filter chain, with references to all resources they need."""

    messages: tuple[_Filter, ...]
    references: frozenset[Reference]


def inbound(policy: ProxyPolicy, port: InboundPort, caller: ServiceIdentity | None = None) -> Filters:
    """Return the filters of an inbound port, or of one caller of a TCP port: rules, then the application."""
    if port.protocol.is_http:
        return _requests(policy, port, proven=not admitted(port.access, AuthenticatedName))
    if caller is None:
        rules = rbac.rules(divided(port.access).proven, policy.trust_domain)
    else:
        rules = rbac.only(caller, policy.trust_domain)
    cluster = names.local_cluster(policy.primary, port.port)
    proxy = _tcp_proxy(policy.terms, f"inbound.{port.port}", cluster)
    if port.rates.counted_connections is None:
        # Connect to the application only after the handshake has proved the caller's identity. Early data of
        # the caller waits in a buffer, whose size Envoy requires. With a rate limit service in front the
        # handshake may finish before Envoy would start to wait for it, so the option is left out.
        proxy.upstream_connect_mode = tcp_proxy_pb2.UpstreamConnectMode.ON_DOWNSTREAM_TLS_HANDSHAKE
        proxy.max_early_data_bytes.CopyFrom(UInt32Value(value=_EARLY_BYTES))
    return _guarded(policy.terms, port, rules, proxy)


def inbound_plain(policy: ProxyPolicy, port: InboundPort) -> Filters:
    """Return the filters for plaintext callers; on a TCP port with the rules for plaintext callers only.

    Therefore neither chain of a TCP port changes with the other's callers. The permission is known when the
    connection arrives, so nothing has to wait.
    """
    if port.protocol.is_http:
        return _requests(policy, port, proven=False)
    rules = rbac.rules(divided(port.access).plain, policy.trust_domain)
    cluster = names.local_cluster(policy.primary, port.port)
    proxy = _tcp_proxy(policy.terms, f"inbound.{port.port}", cluster)
    return _guarded(policy.terms, port, rules, proxy)


def _requests(policy: ProxyPolicy, port: InboundPort, *, proven: bool) -> Filters:
    """Return the filters of an HTTP port; with `proven` all callers are identities of the mesh."""
    route = names.inbound_routes(port.port)
    features = order.inbound(policy.trust_domain, policy.denials, port, proven=proven)
    manager = connection_manager(route, policy.terms, policy.primary, features)
    needed = frozenset(
        {
            reference(ROUTE, route),
            *report_clusters(policy.terms),
            *_authorizer_clusters(port),
            *_counting(port),
        }
    )
    return Filters((*_counted(port), manager), needed)


def _guarded(terms: MeshTerms, port: InboundPort, rules: rbac_pb2.RBAC, proxy: _TcpProxy) -> Filters:
    """Return the filters of a TCP port: rules, connection limits, and the proxy to the application."""
    guard = network_rbac_pb2.RBAC(stat_prefix=f"inbound.{port.port}.", rules=rules)
    return Filters(
        (
            _Filter(name="envoy.filters.network.rbac", typed_config=packed(guard)),
            *_counted(port),
            _Filter(name="envoy.filters.network.tcp_proxy", typed_config=packed(proxy)),
        ),
        frozenset({reference(CLUSTER, proxy.cluster), *_counting(port), *written(terms)}),
    )


def _counted(port: InboundPort) -> Iterator[_Filter]:
    """Yield the filters with limits for connections to a port: the local limit, then a rate limit service."""
    if (limit := port.rates.connections) is not None:
        yield rates.of_connections(f"inbound.{port.port}", limit)
    if (counted := port.rates.counted_connections) is not None:
        yield rate_services.of_connections(f"inbound.{port.port}", counted)


def _counting(port: InboundPort) -> Iterator[Reference]:
    """Yield the clusters of the rate limit services of a port."""
    for service in port.rates.services:
        yield reference(CLUSTER, names.rate_limit_cluster(service.server))


def own_chains(port: InboundPort) -> tuple[ServiceIdentity, ...]:
    """Return the callers of an inbound TCP port that have filter chains of their own."""
    if port.protocol.is_http or isinstance(port.access, EveryoneInTheMesh):
        return ()
    return admitted(port.access, ServiceIdentity)[:OWN_CHAINS]


def outbound(terms: MeshTerms, service: OutboundService) -> Iterator[tuple[tuple[str, ...], Filters]]:
    """Yield the filters of a called service, with routes, or for TCP with backends.

    Each is for connections that ask for one of these server names; without names for all others.
    """
    if service.protocol.is_http:
        route = names.outbound_routes(service)
        manager = connection_manager(route, terms, service.upstream, order.outbound(service))
        yield (), Filters((manager,), frozenset({reference(ROUTE, route), *report_clusters(terms)}))
        return
    ways = [(entry.server_names, entry.shares) for entry in service.table]
    if not ways or ways[-1][0]:
        # Without this chain, connections for other names would leave the mesh.
        ways.append(((), ()))
    for server_names, shares in ways:
        stat_prefix = f"outbound.{service.upstream}|{service.port}"
        yield server_names, to_clusters(terms, stat_prefix, shares, tries=tries(terms.resilience.retry))


def tries(retry: RetryPolicy | None) -> int:
    """Return the number of connection attempts for a TCP connection."""
    return 1 + retry.retries if retry is not None and RetryOn.CONNECT_FAILURE in retry.on else 1


def report_clusters(terms: MeshTerms) -> Iterator[Reference]:
    """Yield the clusters to which a connection manager reports requests: traces and access logs."""
    if terms.tracing is not None:
        yield reference(CLUSTER, names.TRACING_CLUSTER)
    yield from written(terms)


def _authorizer_clusters(port: InboundPort) -> Iterator[Reference]:
    """Yield the cluster of the external authorizer of a port."""
    if port.asked is not None:
        yield reference(CLUSTER, names.authorizer_cluster(port.asked))


def written(terms: MeshTerms) -> Iterator[Reference]:
    """Yield the cluster for access logs, if there is one."""
    if (collector := terms.logs.collector) is not None:
        yield reference(CLUSTER, names.extension_cluster(collector.key))


def to_clusters(terms: MeshTerms, stat_prefix: str, shares: Iterable[Share], tries: int = 1) -> Filters:
    """Return a TCP proxy to weighted backends, without those of weight 0, which Envoy refuses here.

    Connections of answered shares are closed: Envoy finds no cluster for them. So are all without a share.
    """
    ways = [
        (names.cluster(share) if isinstance(share, WeightedBackend) else names.NO_CLUSTER, share.weight)
        for share in shares
        if share.weight > 0
    ] or [(names.NO_CLUSTER, 1)]
    if len(ways) == 1:
        return to_cluster(terms, stat_prefix, ways[0][0], tries)
    weighted = _TcpProxy.WeightedCluster(
        clusters=[_TcpProxy.WeightedCluster.ClusterWeight(name=name, weight=weight) for name, weight in ways]
    )
    proxy = _TcpProxy(
        stat_prefix=stat_prefix,
        weighted_clusters=weighted,
        access_log=access_log.connections(terms.logs),
        idle_timeout=_idle(terms),
    )
    _tried(proxy, tries)
    needed = (way for name, _ in ways for way in _references(name))
    return Filters((_named(proxy),), frozenset((*needed, *written(terms))))


def to_cluster(terms: MeshTerms, stat_prefix: str, cluster: str, tries: int = 1) -> Filters:
    """Return the filters with a TCP proxy to one cluster."""
    proxy = _tcp_proxy(terms, stat_prefix, cluster)
    _tried(proxy, tries)
    return Filters((_named(proxy),), frozenset({*_references(cluster), *written(terms)}))


def _references(cluster: str) -> tuple[Reference, ...]:
    """Return the reference to a cluster; none if it is missing on purpose."""
    return () if cluster == names.NO_CLUSTER else (reference(CLUSTER, cluster),)


def _tried(proxy: _TcpProxy, tries: int) -> None:
    if tries > 1:
        proxy.max_connect_attempts.CopyFrom(UInt32Value(value=tries))


def _named(proxy: _TcpProxy) -> _Filter:
    return _Filter(name="envoy.filters.network.tcp_proxy", typed_config=packed(proxy))


def _tcp_proxy(terms: MeshTerms, stat_prefix: str, cluster: str) -> _TcpProxy:
    written_to = access_log.connections(terms.logs)
    return _TcpProxy(
        stat_prefix=stat_prefix, cluster=cluster, access_log=written_to, idle_timeout=_idle(terms)
    )


def _idle(terms: MeshTerms) -> Duration:
    """Return the idle timeout of TCP connections. Envoy's default is 1 hour; 0 means "without a timeout"."""
    return surviving.duration(terms.long_lived.tcp_idle or timedelta())
