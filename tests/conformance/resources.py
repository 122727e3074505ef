"""Synthetic configuration that an Envoy and a gRPC client both could run."""

from datetime import timedelta

from envoy_data_plane.envoy.config.core import v3 as core_v3
from envoy_data_plane.envoy.extensions.filters.http.on_demand import v3 as on_demand_v3
from google.protobuf import json_format

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401 - ParseDict must know it
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2,
)
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2, tls_pb2  # noqa: F401 - as above
from xds.protocol.resources.resource import Resource, encode

Json = dict[str, object]

ADS: Json = {"ads": {}, "resource_api_version": "V3"}
ROUTES = "front"
TYPE = "type.googleapis.com/envoy.extensions"


def cluster(name: str, *, timeout: str = "1s", policy: str = "ROUND_ROBIN") -> Resource:
    """Return a cluster with endpoints from discovery.

    A timeout that is not positive, or a policy CLUSTER_PROVIDED, makes it one that Envoy rejects.
    """
    eds = {
        "name": name,
        "type": "EDS",
        "connect_timeout": timeout,
        "eds_cluster_config": {"eds_config": ADS},
        "lb_policy": policy,
    }
    return encode(json_format.ParseDict(eds, cluster_pb2.Cluster()))


def endpoints(name: str, *ports: int) -> Resource:
    """Return the endpoints of a cluster: ports of this machine."""
    addresses = [{"socket_address": {"address": "127.0.0.1", "port_value": port}} for port in ports]
    locality = {
        "locality": {"region": "r"},
        "load_balancing_weight": 1,  # gRPC drops a locality without one
        "lb_endpoints": [{"endpoint": {"address": address}} for address in addresses],
    }
    load = {"cluster_name": name, "endpoints": [locality] if ports else []}
    return encode(json_format.ParseDict(load, endpoint_pb2.ClusterLoadAssignment()))


def upstream(name: str, *ports: int) -> tuple[Resource, Resource]:
    """Return a cluster and its endpoints."""
    return cluster(name), endpoints(name, *ports)


def manager(routes: str = ROUTES) -> Json:
    """Return an HTTP connection manager that takes its routes from us."""
    return {
        "@type": f"{TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "rds": {"route_config_name": routes, "config_source": ADS},
        "http_filters": [
            {"name": "router", "typed_config": {"@type": f"{TYPE}.filters.http.router.v3.Router"}}
        ],
    }


def listener(port: int, *, name: str = "front", routes: str = ROUTES, edition: int = 1) -> Resource:
    """Return a listener; another edition is another listener on the same port."""
    return encode(json_format.ParseDict(_listener(port, name, routes, edition), listener_pb2.Listener()))


def tls_listener(port: int, secret: str, *, name: str = "front-tls") -> Resource:
    """Return a listener whose certificate comes from discovery."""
    message = _listener(port, name, ROUTES, 1)
    context = {
        "@type": f"{TYPE}.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {
            "tls_certificate_sds_secret_configs": [{"name": secret, "sds_config": ADS}],
        },
    }
    chain = message["filter_chains"]
    assert isinstance(chain, list)
    chain[0]["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": context}
    return encode(json_format.ParseDict(message, listener_pb2.Listener()))


def on_demand_listener(port: int, patience: timedelta) -> Resource:
    """Return a listener that asks for a cluster when the first request for it comes, and waits so long."""
    message = json_format.ParseDict(_listener(port, "front", ROUTES, 1), listener_pb2.Listener())
    packed = message.filter_chains[0].filters[0].typed_config
    connections = http_connection_manager_pb2.HttpConnectionManager.FromString(packed.value)
    router = http_connection_manager_pb2.HttpFilter.FromString(
        connections.http_filters.pop().SerializeToString()
    )
    source = core_v3.ConfigSource(
        ads=core_v3.AggregatedConfigSource(), resource_api_version=core_v3.ApiVersion.V3
    )
    wanted = on_demand_v3.OnDemand(odcds=on_demand_v3.OnDemandCds(source=source, timeout=patience))
    ours = connections.http_filters.add(name="on-demand")
    ours.typed_config.type_url = f"{TYPE}.filters.http.on_demand.v3.OnDemand"
    ours.typed_config.value = bytes(wanted)
    connections.http_filters.append(router)
    packed.Pack(connections)
    return encode(message)


def route_by_header(header: str) -> Resource:
    """Return routes that send a request to the cluster that a header of it names."""
    host = {
        "name": "all",
        "domains": ["*"],
        "routes": [{"match": {"prefix": ""}, "route": {"cluster_header": header}}],
    }
    message = {"name": ROUTES, "virtual_hosts": [host]}
    return encode(json_format.ParseDict(message, route_pb2.RouteConfiguration()))


def api_listener(name: str) -> Resource:
    """Return the listener that a gRPC client asks for."""
    message = {"name": name, "api_listener": {"api_listener": manager()}}
    return encode(json_format.ParseDict(message, listener_pb2.Listener()))


def route(to: str, *, name: str = ROUTES, pattern: str = "", unchecked: bool = False) -> Resource:
    """Return routes that send everything to one cluster; `unchecked`, a snapshot may lack it.

    A `pattern` that is no regular expression makes one that Envoy rejects.
    """
    match = {"safe_regex": {"regex": pattern}} if pattern else {"prefix": ""}
    host = {"name": "all", "domains": ["*"], "routes": [{"match": match, "route": {"cluster": to}}]}
    message = json_format.ParseDict({"name": name, "virtual_hosts": [host]}, route_pb2.RouteConfiguration())
    return encode(message, frozenset()) if unchecked else encode(message)


def secret(name: str, chain: bytes, key: bytes) -> Resource:
    """Return a certificate with its key."""
    message = secret_pb2.Secret(name=name)
    message.tls_certificate.certificate_chain.inline_bytes = chain
    message.tls_certificate.private_key.inline_bytes = key
    return encode(message)


def _listener(port: int, name: str, routes: str, edition: int) -> Json:
    return {
        "name": name,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "per_connection_buffer_limit_bytes": 1024 * 1024 + edition,
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager(routes)}]}],
    }
