"""Synthetic resources of any number: `ns/svc-<i>|80` for i from 0."""

from collections.abc import Iterable, Iterator

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_components_pb2, endpoint_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, ROUTE, Resource, ResourceName, encode


def service(number: int) -> str:
    """Return the name of the resources of service `number`."""
    return f"ns/svc-{number}|80"


def assignment(number: int, endpoints: int, revision: int) -> Resource:
    """Return the ClusterLoadAssignment of a service; another `revision` changes the port of its endpoints."""
    locality = endpoint_components_pb2.LocalityLbEndpoints()
    for index in range(number * endpoints, (number + 1) * endpoints):
        socket = locality.lb_endpoints.add().endpoint.address.socket_address
        socket.address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
        socket.port_value = 8080 + revision % 50000
    return encode(
        endpoint_pb2.ClusterLoadAssignment(cluster_name=service(number), endpoints=[locality]),
    )


def around(services: Iterable[int]) -> Iterator[Resource]:
    """Return the other resources of a proxy: a cluster and a route for each service, and one listener."""
    services = tuple(services)
    for number in services:
        name = service(number)
        cluster = cluster_pb2.Cluster(name=name, type=cluster_pb2.Cluster.EDS)
        cluster.eds_cluster_config.eds_config.ads.SetInParent()
        cluster.connect_timeout.FromSeconds(1)
        yield encode(cluster, frozenset(((ENDPOINT, ResourceName(name)),)))
        route = route_components_pb2.Route(
            match=route_components_pb2.RouteMatch(prefix="/"),
            route=route_components_pb2.RouteAction(cluster=name),
        )
        host = route_components_pb2.VirtualHost(name=name, domains=["*"], routes=[route])
        yield encode(
            route_pb2.RouteConfiguration(name=name, virtual_hosts=[host]),
            frozenset(((CLUSTER, ResourceName(name)),)),
        )
    listener = listener_pb2.Listener(name="outbound-listener")
    listener.address.socket_address.address = "127.0.0.1"
    listener.address.socket_address.port_value = 15001
    yield encode(listener, frozenset((ROUTE, ResourceName(service(n))) for n in services))
