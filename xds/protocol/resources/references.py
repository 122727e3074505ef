"""Finder of the references in a resource: names of other necessary resources."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any as Anything
from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from protos.envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2, tls_pb2
from xds.protocol.type_urls import CLUSTER, ENDPOINT, PREFIX, ROUTE, SECRET, Reference, ResourceName

_Weight = (
    route_components_pb2.WeightedCluster.ClusterWeight | tcp_proxy_pb2.TcpProxy.WeightedCluster.ClusterWeight
)

_UNPACKED: Final = {
    PREFIX + kind.DESCRIPTOR.full_name: kind
    for kind in (
        http_connection_manager_pb2.HttpConnectionManager,
        tcp_proxy_pb2.TcpProxy,
        tls_pb2.DownstreamTlsContext,
        tls_pb2.UpstreamTlsContext,
    )
}
"""Extensions searched for references."""


def references(message: Message) -> frozenset[Reference]:
    """Return the (type, name) pairs needed by a resource from discovery.

    For example, a listener with RDS gives `(ROUTE, "inbound|80")`. References are endpoints of a cluster,
    secrets of TLS contexts, route configurations of listeners, and clusters of routes and TCP proxies.
    References inside other extensions than the four of `_UNPACKED` are not found.
    """
    return frozenset(_walk(message))


def _walk(message: Message) -> Iterator[Reference]:
    # Every field is visited, not only known paths. TLS contexts and route actions occur in many places, and
    # with one of them missed an inconsistent snapshot would count as consistent.
    if (result := _FOUND.get(message.DESCRIPTOR.full_name)) is not None:
        yield from result(message)
    for field, value in message.ListFields():
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            continue
        if not field.is_repeated:
            yield from _enter(value)
        elif isinstance(value, Mapping):
            for item in value.values():
                if isinstance(item, Message):
                    yield from _enter(item)
        else:
            for item in value:
                yield from _enter(item)


def _enter(value: Message) -> Iterator[Reference]:
    if not isinstance(value, Any):
        yield from _walk(value)
    elif (kind := _UNPACKED.get(value.type_url)) is not None:
        yield from _walk(kind.FromString(value.value))


def _of_cluster(message: cluster_pb2.Cluster) -> Iterator[Reference]:
    if message.type == cluster_pb2.Cluster.EDS:
        yield ENDPOINT, ResourceName(message.eds_cluster_config.service_name or message.name)


def _of_secret(message: secret_pb2.SdsSecretConfig) -> Iterator[Reference]:
    if message.sds_config.HasField("ads"):
        yield SECRET, ResourceName(message.name)


def _of_rds(message: http_connection_manager_pb2.Rds) -> Iterator[Reference]:
    yield ROUTE, ResourceName(message.route_config_name)


def _of_route(message: route_components_pb2.RouteAction | tcp_proxy_pb2.TcpProxy) -> Iterator[Reference]:
    if message.cluster:
        yield CLUSTER, ResourceName(message.cluster)


def _of_weight(message: _Weight) -> Iterator[Reference]:
    if message.name:
        yield CLUSTER, ResourceName(message.name)


_FOUND: Final[dict[str, Callable[[Anything], Iterator[Reference]]]] = {
    cluster_pb2.Cluster.DESCRIPTOR.full_name: _of_cluster,
    secret_pb2.SdsSecretConfig.DESCRIPTOR.full_name: _of_secret,
    http_connection_manager_pb2.Rds.DESCRIPTOR.full_name: _of_rds,
    route_components_pb2.RouteAction.DESCRIPTOR.full_name: _of_route,
    tcp_proxy_pb2.TcpProxy.DESCRIPTOR.full_name: _of_route,
    route_components_pb2.WeightedCluster.ClusterWeight.DESCRIPTOR.full_name: _of_weight,
    tcp_proxy_pb2.TcpProxy.WeightedCluster.ClusterWeight.DESCRIPTOR.full_name: _of_weight,
}
