"""Two clusters, one listener, and an Envoy that follows a change: Meshwright's xDS server used alone.

Run it with the address to serve on, the port Envoy shall listen on, and the ports of two HTTP servers:
`python docs/examples/two_clusters.py 127.0.0.1:18000 10000 8001 8002`; then start Envoy with the bootstrap
it prints. Each line on standard input, `first` or `second`, sends the traffic there.
"""

import asyncio
import json
import sys

from google.protobuf import json_format

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.http.router.v3 import router_pb2  # noqa: F401 - ParseDict must know it
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2,  # noqa: F401 - ParseDict must know it
)
from xds.cache import GroupKey, NodeKey, SnapshotCache
from xds.hooks import AnyNode
from xds.protocol.resources.resource import Resource, encode
from xds.protocol.resources.snapshot import Snapshot
from xds.server.ads import AdsServer
from xds.server.tls import Plaintext

ADS = {"ads": {}, "resource_api_version": "V3"}
TYPE = "type.googleapis.com/envoy.extensions.filters"


def cluster(name: str, port: int) -> list[Resource]:
    """Return a cluster, and its endpoints."""
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    eds = {"name": name, "type": "EDS", "eds_cluster_config": {"eds_config": ADS}}
    load = {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}]}
    return [
        encode(json_format.ParseDict(eds, cluster_pb2.Cluster())),
        encode(json_format.ParseDict(load, endpoint_pb2.ClusterLoadAssignment())),
    ]


def listener(port: int) -> Resource:
    """Return a listener that takes its routes from us."""
    router = {"name": "router", "typed_config": {"@type": f"{TYPE}.http.router.v3.Router"}}
    manager = {
        "@type": f"{TYPE}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "rds": {"route_config_name": "front", "config_source": ADS},
        "http_filters": [router],
    }
    message = {
        "name": "front",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    return encode(json_format.ParseDict(message, listener_pb2.Listener()))


def route(to: str) -> Resource:
    """Return a route that sends everything to a cluster."""
    host = {
        "name": "all",
        "domains": ["*"],
        "routes": [{"match": {"prefix": "/"}, "route": {"cluster": to}}],
    }
    return encode(
        json_format.ParseDict({"name": "front", "virtual_hosts": [host]}, route_pb2.RouteConfiguration())
    )


def bootstrap(address: str) -> dict[str, object]:
    """Return what an Envoy needs to find us."""
    host, _, port = address.rpartition(":")
    socket = {"socket_address": {"address": host, "port_value": int(port)}}
    http2: dict[str, object] = {"explicit_http_config": {"http2_protocol_options": {}}}
    us = {
        "name": "control-plane",
        "type": "STATIC",
        "load_assignment": {
            "cluster_name": "control-plane",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": socket}}]}],
        },
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                **http2,
            }
        },
    }
    services = [{"envoy_grpc": {"cluster_name": "control-plane"}}]
    ads = {"api_type": "DELTA_GRPC", "transport_api_version": "V3", "grpc_services": services}
    return {
        "node": {"id": "example", "cluster": "example"},
        "dynamic_resources": {"ads_config": ads, "cds_config": ADS, "lds_config": ADS},
        "static_resources": {"clusters": [us]},
    }


async def main(address: str, port: int, first: int, second: int) -> None:
    """Serve until standard input ends."""
    cache, group, node = SnapshotCache(), GroupKey("fronts"), NodeKey("everybody")
    server = AdsServer(cache, AnyNode(node), Plaintext.ON_LOOPBACK)
    await server.start(address)
    resources = [*cluster("first", first), *cluster("second", second), listener(port), route("first")]
    cache.publish({group: Snapshot.of(resources)}, {node: group})
    print(json.dumps(bootstrap(address)), flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        cache.update(group, [route(line.strip())])
    await server.stop(grace=1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
