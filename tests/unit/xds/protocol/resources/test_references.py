"""Tests of the references of a resource to other resources."""

from google.protobuf.any_pb2 import Any

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.core.v3 import base_pb2, config_source_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import http_connection_manager_pb2
from protos.envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2, tls_pb2
from xds.protocol.resources.references import references
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, ROUTE, SECRET

_ADS = config_source_pb2.ConfigSource(ads=config_source_pb2.AggregatedConfigSource())


def packed(message: http_connection_manager_pb2.HttpConnectionManager | tcp_proxy_pb2.TcpProxy) -> Any:
    """Pack a message."""
    holder = Any()
    holder.Pack(message)
    return holder


def test_cluster_refers_to_its_endpoints_and_secrets() -> None:
    """Endpoints are found by the service name if there is one. A static cluster refers to none."""
    tls = tls_pb2.UpstreamTlsContext()
    tls.common_tls_context.tls_certificate_sds_secret_configs.append(
        secret_pb2.SdsSecretConfig(name="cert", sds_config=_ADS)
    )
    socket = base_pb2.TransportSocket(name="tls")
    socket.typed_config.Pack(tls)
    cluster = cluster_pb2.Cluster(name="c", type=cluster_pb2.Cluster.EDS, transport_socket=socket)

    assert references(cluster) == {(ENDPOINT, "c"), (SECRET, "cert")}
    cluster.eds_cluster_config.service_name = "other"
    assert (ENDPOINT, "other") in references(cluster)
    assert references(cluster_pb2.Cluster(name="c", type=cluster_pb2.Cluster.STATIC)) == set()


def test_listener_refers_to_routes_and_clusters_of_its_filters() -> None:
    """HTTP filters refer to route configurations, and TCP filters to one cluster or to weighted clusters."""
    http = http_connection_manager_pb2.HttpConnectionManager()
    http.rds.route_config_name = "r"
    tcp = tcp_proxy_pb2.TcpProxy(cluster="one")
    weighted = tcp_proxy_pb2.TcpProxy()
    weighted.weighted_clusters.clusters.add(name="two", weight=1)
    filters = [
        listener_components_pb2.Filter(name="f", typed_config=packed(item)) for item in (http, tcp, weighted)
    ]
    listener = listener_pb2.Listener(
        name="l", filter_chains=[listener_components_pb2.FilterChain(filters=filters)]
    )

    assert references(listener) == {(ROUTE, "r"), (CLUSTER, "one"), (CLUSTER, "two")}


def test_route_refers_to_its_clusters() -> None:
    """A route refers to one cluster, or to several weighted clusters."""
    one = route_components_pb2.Route(route=route_components_pb2.RouteAction(cluster="a"))
    several = route_components_pb2.Route()
    several.route.weighted_clusters.clusters.add(name="b")
    host = route_components_pb2.VirtualHost(name="h", routes=[one, several])

    assert references(route_pb2.RouteConfiguration(name="r", virtual_hosts=[host])) == {
        (CLUSTER, "a"),
        (CLUSTER, "b"),
    }
