"""Clusters (CDS): destinations in the mesh and outside, the application itself, and egress."""

from datetime import timedelta
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, NamedTuple

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.destinations import ExternalDestination, ServiceDestination
from catalog.policy.values.inbound import InboundPort
from catalog.policy.values.interception import SocketAddress
from catalog.policy.values.route_actions import HttpVersion
from catalog.policy.values.terms import MeshTerms
from catalog.store.settings import HeaderLimits
from meshwright.mesh.config import TracingProtocol
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import IpAddress, Port
from meshwright.mesh.policies.limits import ConnectionLimits
from meshwright.mesh.policies.resilience import Keepalive
from meshwright.mesh.policies.telemetry import ExtensionService
from meshwright.mesh.policies.upstreams import BalancingAlgorithm, OutlierDetectionOverride
from meshwright.mesh.service import ServiceKey
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.clusters import health_checks
from meshwright.sidecars.envoy.clusters import outlier_detection as surviving
from meshwright.sidecars.envoy.clusters.circuit_breakers import UNLIMITED, circuit_breakers
from meshwright.sidecars.envoy.clusters.endpoints import endpoint
from meshwright.sidecars.envoy.common_messages import OVER_ADS, packed, reference
from meshwright.sidecars.envoy.security import tls
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.core.v3 import base_pb2, protocol_pb2
from protos.envoy.config.endpoint.v3 import endpoint_components_pb2, endpoint_pb2
from protos.envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2
from xds.protocol.resources.resource import ENDPOINT, Resource, encode

ALIKE: Final = 64
"""Number of cached kinds of clusters; with equal mesh-wide terms most destinations are of the same kind."""

_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_CONNECT_TIMEOUT = Duration(seconds=5)
_Cluster = cluster_pb2.Cluster
_BALANCING: Final = {
    BalancingAlgorithm.ROUND_ROBIN: _Cluster.LbPolicy.ROUND_ROBIN,
    BalancingAlgorithm.LEAST_REQUEST: _Cluster.LbPolicy.LEAST_REQUEST,
    BalancingAlgorithm.RANDOM: _Cluster.LbPolicy.RANDOM,
    BalancingAlgorithm.CONSISTENT_HASH: _Cluster.LbPolicy.RING_HASH,
}


def destination(terms: MeshTerms, wanted: ServiceDestination) -> Resource:
    """Return the cluster of a destination, with mutual TLS to the expected identities unless it is `plain`.

    A `plain` destination may have the TLS of a BackendTLSPolicy.

    ADS delivers the endpoints. A removed endpoint is dropped at once, whether healthy or not. For a
    destination `as_called` the endpoint is the connection's original destination; the listener passes only
    calls to known endpoints. HTTP requests keep their protocol version.
    """
    name = names.cluster(wanted)
    message = _Cluster(name=name, transport_socket=_security(terms, wanted))
    kind = _Kind(
        wanted.is_http, wanted.as_called, wanted.limits, wanted.ejecting, wanted.balancing, wanted.version
    )
    message.MergeFrom(_destination(terms, kind))
    if wanted.checking is not None:
        health_checks.ask(message, wanted.checking, wanted.server_name)
    needed = tls.references_of_backend(wanted.tls) if wanted.plain else tls.references(terms)
    # A cluster of the original destination needs no load assignment.
    return encode(message, needed if wanted.as_called else needed | {reference(ENDPOINT, name)})


def _security(terms: MeshTerms, wanted: ServiceDestination) -> base_pb2.TransportSocket | None:
    if not wanted.plain:
        return tls.upstream(terms, wanted)
    if wanted.tls is None:
        return None
    return tls.to_backend(wanted.tls, wanted.version if wanted.is_http else None)


def application(
    headers: HeaderLimits, reuse: timedelta | None, primary: ServiceKey, port: InboundPort
) -> Resource:
    """Return the cluster of the application behind an inbound port: a fixed address, plaintext."""
    name = names.local_cluster(primary, port.port)
    places = [port.application] if port.otherwise is None else [port.application, port.otherwise]
    message = _Cluster(name=name, load_assignment=_one_endpoint(name, *places))
    message.MergeFrom(_limited(headers, UNLIMITED, is_http=port.protocol.is_http, reuse=reuse))
    return encode(message, ())


def external(headers: HeaderLimits, reuse: timedelta | None, wanted: ExternalDestination) -> Resource:
    """Return the cluster of a host outside of the mesh, without the mesh's TLS.

    `wanted.tls` may require other TLS.

    Envoy resolves a name with LOGICAL_DNS, which keeps open connections when the next DNS answer differs, as
    the answers of large sites always do. Addresses of both families are tried: by default Envoy would use
    IPv6 alone if the host has IPv6, which may be unreachable from here.
    """
    where = HostPort(wanted.host.name, wanted.port)
    alike = _limited(headers, wanted.limits, is_http=wanted.is_http, reuse=reuse)
    message = _of_host(names.cluster(wanted), where, alike)
    if wanted.tls is not None:
        message.transport_socket.CopyFrom(tls.origination(wanted.tls))
    return encode(message)


def authorizer(name: str, server: HostPort) -> Resource:
    """Return the cluster of an external authorizer: gRPC in plaintext."""
    return _grpc(name, server)


def rate_limits(server: HostPort) -> Resource:
    """Return the cluster of a rate limit service: gRPC in plaintext."""
    return _grpc(names.rate_limit_cluster(server), server)


def extension(service: ExtensionService) -> Resource:
    """Return the cluster of an ExtensionService: gRPC in plaintext."""
    limits = ConnectionLimits(connect_timeout=service.connect_timeout)
    return _grpc(names.extension_cluster(service.key), service.server, limits)


def collector(protocol: TracingProtocol, server: HostPort) -> Resource:
    """Return the cluster of a tracing collector in plaintext: HTTP/1.1 for Zipkin, gRPC for OTLP."""
    match protocol:
        case TracingProtocol.ZIPKIN:
            # Without protocol options Envoy uses HTTP/1.1, as Zipkin's collectors expect.
            alike = _limited(HeaderLimits(), UNLIMITED, is_http=False)
            return encode(_of_host(names.TRACING_CLUSTER, server, alike))
        case TracingProtocol.OTLP:
            return _grpc(names.TRACING_CLUSTER, server)


def _grpc(name: str, server: HostPort, limits: ConnectionLimits = UNLIMITED) -> Resource:
    message = _of_host(name, server, _limited(HeaderLimits(), limits, is_http=False))
    if limits != UNLIMITED:
        message.circuit_breakers.CopyFrom(circuit_breakers())
    http2 = http_protocol_options_pb2.HttpProtocolOptions.ExplicitHttpConfig(
        http2_protocol_options=protocol_pb2.Http2ProtocolOptions()
    )
    options = http_protocol_options_pb2.HttpProtocolOptions(explicit_http_config=http2)
    message.typed_extension_protocol_options[_HTTP_OPTIONS].CopyFrom(packed(options))
    return encode(message)


def passthrough() -> Resource:
    """Return the cluster for TCP egress to the original destination."""
    return encode(
        _Cluster(
            name=names.PASSTHROUGH_CLUSTER,
            type=_Cluster.DiscoveryType.ORIGINAL_DST,
            lb_policy=_Cluster.LbPolicy.CLUSTER_PROVIDED,
            connect_timeout=_CONNECT_TIMEOUT,
            circuit_breakers=circuit_breakers(),
        )
    )


def passthrough_http(headers: HeaderLimits, reuse: timedelta | None) -> Resource:
    """Return the cluster for HTTP egress to the original destination, in the request's protocol version."""
    message = _Cluster(name=names.PASSTHROUGH_HTTP_CLUSTER)
    message.MergeFrom(_limited(headers, UNLIMITED, is_http=True, reuse=reuse))
    message.type = _Cluster.DiscoveryType.ORIGINAL_DST
    message.lb_policy = _Cluster.LbPolicy.CLUSTER_PROVIDED
    return encode(message)


def blackhole() -> Resource:
    """Return the cluster without endpoints, which closes forbidden calls and loops at once."""
    return encode(
        _Cluster(
            name=names.BLACKHOLE_CLUSTER,
            type=_Cluster.DiscoveryType.STATIC,
            connect_timeout=_CONNECT_TIMEOUT,
            load_assignment=endpoint_pb2.ClusterLoadAssignment(cluster_name=names.BLACKHOLE_CLUSTER),
        )
    )


class _Kind(NamedTuple):
    """The properties in which clusters of destinations differ, besides names and TLS."""

    is_http: bool
    as_called: bool
    limits: ConnectionLimits
    ejecting: OutlierDetectionOverride | None
    balancing: BalancingAlgorithm
    version: HttpVersion = HttpVersion.CALLERS


@lru_cache(ALIKE)
def _destination(terms: MeshTerms, kind: _Kind) -> _Cluster:
    """Return the common part of the clusters of mesh destinations, to be merged into each."""
    message, resilience, limits = _Cluster(), terms.resilience, kind.limits
    alike = _limited(
        terms.headers, limits, is_http=kind.is_http, keepalive=resilience.keepalive, version=kind.version
    )
    message.CopyFrom(alike)
    message.MergeFrom(surviving.peers(resilience, kind.ejecting, as_called=kind.as_called))
    if limits.connect_timeout is None:
        # The mesh's setting is a default: the limit of an object wins.
        message.connect_timeout.CopyFrom(surviving.duration(resilience.connect_timeout))
    if kind.as_called:
        message.type = _Cluster.DiscoveryType.ORIGINAL_DST
        message.lb_policy = _Cluster.LbPolicy.CLUSTER_PROVIDED
        return message
    message.type = _Cluster.DiscoveryType.EDS
    message.eds_cluster_config.eds_config.CopyFrom(OVER_ADS)
    message.common_lb_config.SetInParent()
    message.ignore_health_on_host_removal = True
    message.lb_policy = _BALANCING[kind.balancing]
    return message


@lru_cache(ALIKE)
def _limited(
    headers: HeaderLimits,
    limits: ConnectionLimits,
    *,
    is_http: bool,
    keepalive: Keepalive | None = None,
    reuse: timedelta | None = None,
    version: HttpVersion = HttpVersion.CALLERS,
) -> _Cluster:
    """Return the common part of clusters (static type, limits, protocol options), to be merged."""
    return _Cluster(
        type=_Cluster.DiscoveryType.STATIC,
        connect_timeout=_connect_timeout(limits),
        circuit_breakers=circuit_breakers(limits),
        typed_extension_protocol_options=_protocol_options(
            headers, limits, keepalive, reuse, is_http=is_http, version=version
        ),
    )


def _connect_timeout(limits: ConnectionLimits) -> Duration:
    if limits.connect_timeout is None:
        return _CONNECT_TIMEOUT
    return surviving.duration(limits.connect_timeout)


def _of_host(name: str, where: HostPort, alike: _Cluster) -> _Cluster:
    """Return a cluster of one host, by name or address, with the common part `alike`."""
    place = SocketAddress(IpAddress(where.host), Port(where.port))
    message = _Cluster(name=name, load_assignment=_one_endpoint(name, place))
    message.MergeFrom(alike)
    if not _is_address(where.host):
        message.type = _Cluster.DiscoveryType.LOGICAL_DNS
        message.dns_lookup_family = _Cluster.DnsLookupFamily.ALL
    return message


def _one_endpoint(cluster: str, *where: SocketAddress) -> endpoint_pb2.ClusterLoadAssignment:
    lb_endpoint = endpoint_components_pb2.LbEndpoint(endpoint=endpoint(*where))
    locality = endpoint_components_pb2.LocalityLbEndpoints(lb_endpoints=[lb_endpoint])
    return endpoint_pb2.ClusterLoadAssignment(cluster_name=cluster, endpoints=[locality])


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _protocol_options(
    headers: HeaderLimits,
    limits: ConnectionLimits,
    keepalive: Keepalive | None,
    reuse: timedelta | None,
    *,
    is_http: bool,
    version: HttpVersion,
) -> dict[str, Any]:
    if not is_http:
        return {}
    of_http2 = protocol_pb2.Http2ProtocolOptions(
        connection_keepalive=None if keepalive is None else surviving.pings(keepalive)
    )
    options = http_protocol_options_pb2.HttpProtocolOptions(
        common_http_protocol_options=protocol_pb2.HttpProtocolOptions(
            # Shorter than in applications: if one closes just as a request arrives, the answer is 503.
            idle_timeout=None if reuse is None else surviving.duration(reuse),
            max_headers_count=UInt32Value(value=headers.count),
            max_response_headers_kb=UInt32Value(value=headers.kibibytes),
            max_requests_per_connection=(
                None
                if limits.requests_per_connection is None
                else UInt32Value(value=limits.requests_per_connection)
            ),
        ),
    )
    match version:
        case HttpVersion.HTTP1:
            options.explicit_http_config.http_protocol_options.SetInParent()
        case HttpVersion.HTTP2:
            options.explicit_http_config.http2_protocol_options.CopyFrom(of_http2)
        case HttpVersion.CALLERS:
            options.use_downstream_protocol_config.http_protocol_options.SetInParent()
            options.use_downstream_protocol_config.http2_protocol_options.CopyFrom(of_http2)
    return {_HTTP_OPTIONS: packed(options)}
