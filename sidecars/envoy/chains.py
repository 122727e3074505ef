"""Network filters: what a filter chain does with a connection once a listener has chosen it.

A TCP connection that is open when its permission goes lives until its filter chain has drained (Envoy's
`--drain-time-s`): network filters decide once per connection. HTTP is judged request by request.

So each caller of a TCP port has a filter chain of its own, which is there as long as the caller is admitted
and does not change when another one is, or by which rules it is: who loses permission is drained alone. The
caller chooses the chain by the name that it asks for in TLS; the chain demands its certificate. Who says no
such name (a proxy that is not ours), or is not among the first `OWN_CHAINS` by name, comes to the port's
common chain, which admits the same callers and is another one whenever they are.

On a TCP port the RBAC filter lists the identities that the TLS context before it has demanded already
(`sidecars.envoy.tls`), and lets through whoever passed that. It is kept although it repeats them, at some 50
bytes for a client: the two fail in opposite ways. A list of SANs that is empty accepts every certificate of
the mesh, rules without a policy accept nobody; the one mistake that opens a port must be made twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import BoolValue, UInt32Value

from catalog.policy.proxy import EveryoneInTheMesh, InboundPort, OutboundService, ProxyPolicy, WeightedBackend
from mesh.identity import ServiceIdentity
from mesh.service import EscapedSlashes, ServiceKey
from protos.envoy.config.core.v3 import protocol_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2
from protos.envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from protos.envoy.extensions.filters.http.router.v3 import router_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from protos.envoy.extensions.filters.network.rbac.v3 import rbac_pb2 as network_rbac_pb2
from protos.envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2
from sidecars.envoy import access_log, names, rbac
from sidecars.envoy.routes import HTTP_RBAC
from sidecars.envoy.typed import OVER_ADS, Reference, packed, reference
from xds.protocol.resource import CLUSTER, ROUTE

OWN_CHAINS: Final = 256
"""How many callers of a port have filter chains of their own: each takes memory in Envoy, for its TLS."""

_HCM: Final = "envoy.filters.network.http_connection_manager"
_EARLY_BYTES: Final = 64 * 1024
_Manager = hcm_pb2.HttpConnectionManager
_Filter = listener_components_pb2.Filter
_TcpProxy = tcp_proxy_pb2.TcpProxy
_SLASHES: Final = {
    EscapedSlashes.REJECT: _Manager.PathWithEscapedSlashesAction.REJECT_REQUEST,
    EscapedSlashes.KEEP: _Manager.PathWithEscapedSlashesAction.KEEP_UNCHANGED,
}


@dataclass(frozen=True, slots=True)
class Filters:
    """The network filters of a chain, and the resources they need."""

    messages: tuple[_Filter, ...]
    references: frozenset[Reference]


def inbound(policy: ProxyPolicy, port: InboundPort, caller: ServiceIdentity | None = None) -> Filters:
    """Return the filters of an inbound port, or of one caller at a TCP port: rules, then the application."""
    if port.protocol.is_http:
        route = names.inbound_routes(port.port)
        manager = _manager(route, policy, policy.primary, port.escaped_slashes, inbound=True)
        return Filters((manager,), frozenset({reference(ROUTE, route)}))
    cluster = names.local_cluster(policy.primary, port.port)
    if caller is None:
        rules = rbac.rules(port.access, policy.trust_domain)
    else:
        rules = rbac.only(caller, policy.trust_domain)
    guard = network_rbac_pb2.RBAC(stat_prefix=f"inbound.{port.port}.", rules=rules)
    proxy = _tcp_proxy(f"inbound.{port.port}", cluster)
    # The application is not even connected to before the handshake has shown who calls.
    # What the caller sends meanwhile waits in a buffer, whose size Envoy wants to be told.
    proxy.upstream_connect_mode = tcp_proxy_pb2.UpstreamConnectMode.ON_DOWNSTREAM_TLS_HANDSHAKE
    proxy.max_early_data_bytes.CopyFrom(UInt32Value(value=_EARLY_BYTES))
    return Filters(
        (
            _Filter(name="envoy.filters.network.rbac", typed_config=packed(guard)),
            _Filter(name="envoy.filters.network.tcp_proxy", typed_config=packed(proxy)),
        ),
        frozenset({reference(CLUSTER, cluster)}),
    )


def own_chains(port: InboundPort) -> tuple[ServiceIdentity, ...]:
    """Return the callers that have filter chains of their own at an inbound port."""
    if port.protocol.is_http or isinstance(port.access, EveryoneInTheMesh):
        return ()
    return port.access.admitted[:OWN_CHAINS]


def outbound(policy: ProxyPolicy, service: OutboundService) -> Filters:
    """Return the filters of a service that is called: its routes, or for TCP its backends directly."""
    if service.protocol.is_http:
        route = names.outbound_routes(service)
        manager = _manager(route, policy, service.service, service.escaped_slashes, inbound=False)
        return Filters((manager,), frozenset({reference(ROUTE, route)}))
    backends = service.routes[-1].backends
    return to_clusters(f"outbound.{service.service}|{service.port}", backends)


def to_clusters(stat_prefix: str, backends: Iterable[WeightedBackend]) -> Filters:
    """Return a TCP proxy to weighted backends; those of weight 0, which Envoy refuses here, are left out."""
    shares = [(names.cluster(each), each.weight) for each in backends]
    shares = [share for share in shares if share[1] > 0]
    if len(shares) == 1:
        return to_cluster(stat_prefix, shares[0][0])
    weighted = _TcpProxy.WeightedCluster(
        clusters=[
            _TcpProxy.WeightedCluster.ClusterWeight(name=name, weight=weight) for name, weight in shares
        ]
    )
    proxy = _TcpProxy(
        stat_prefix=stat_prefix, weighted_clusters=weighted, access_log=[access_log.connections()]
    )
    return Filters((_named(proxy),), frozenset(reference(CLUSTER, name) for name, _ in shares))


def to_cluster(stat_prefix: str, cluster: str) -> Filters:
    """Return a TCP proxy to one cluster."""
    return Filters((_named(_tcp_proxy(stat_prefix, cluster)),), frozenset({reference(CLUSTER, cluster)}))


def _named(proxy: _TcpProxy) -> _Filter:
    return _Filter(name="envoy.filters.network.tcp_proxy", typed_config=packed(proxy))


def _tcp_proxy(stat_prefix: str, cluster: str) -> _TcpProxy:
    return _TcpProxy(stat_prefix=stat_prefix, cluster=cluster, access_log=[access_log.connections()])


def _manager(
    route: str, policy: ProxyPolicy, host: ServiceKey, slashes: EscapedSlashes, *, inbound: bool
) -> _Filter:
    """Return an HTTP connection manager; a request of HTTP/1.0 that names no host is for `host`.

    The proxy stays out of sight: no Server, Via or x-envoy headers of its own, X-Forwarded-For and
    X-Request-Id as the applications write them (a caller is known by its certificate, not by a header).
    WebSocket upgrades pass. No idle timeout of streams: a quiet stream is not a broken one.
    """
    manager = _Manager(
        stat_prefix=route,
        codec_type=_Manager.CodecType.AUTO,
        rds=hcm_pb2.Rds(config_source=OVER_ADS, route_config_name=route),
        http_filters=_http_filters(inbound=inbound),
        server_header_transformation=_Manager.ServerHeaderTransformation.PASS_THROUGH,
        use_remote_address=BoolValue(value=False),
        skip_xff_append=True,
        stream_idle_timeout=Duration(),
        upgrade_configs=[_Manager.UpgradeConfig(upgrade_type="websocket")],
        access_log=[access_log.requests()],
        http_protocol_options=protocol_pb2.Http1ProtocolOptions(
            accept_http_10=True, default_host_for_http_10=f"{host.name}.{host.namespace}"
        ),
        common_http_protocol_options=protocol_pb2.HttpProtocolOptions(
            max_headers_count=UInt32Value(value=policy.headers.count)
        ),
        max_request_headers_kb=UInt32Value(value=policy.headers.kibibytes),
    )
    # Rules and splits judge the path that the application gets: dot segments are resolved first, and an
    # escaped slash, which applications read in two ways, is refused (400) unless the Service says that it is
    # none (`sidecars.envoy.routes` has the rest). Else `/books/.*` would admit `/books/..%2fadmin`, and a
    # split at the client would see another path than the server's rules.
    manager.normalize_path.CopyFrom(BoolValue(value=True))
    manager.path_with_escaped_slashes_action = _SLASHES[slashes]
    return _Filter(name=_HCM, typed_config=packed(manager))


def _http_filters(*, inbound: bool) -> list[hcm_pb2.HttpFilter]:
    router = hcm_pb2.HttpFilter(
        name="envoy.filters.http.router",
        typed_config=packed(router_pb2.Router(suppress_envoy_headers=True)),
    )
    if not inbound:
        return [router]
    # By itself it denies everything; the route configuration overrides it. What matches no route is denied.
    guard = http_rbac_pb2.RBAC(rules=rbac.deny_all())
    return [hcm_pb2.HttpFilter(name=HTTP_RBAC, typed_config=packed(guard)), router]
