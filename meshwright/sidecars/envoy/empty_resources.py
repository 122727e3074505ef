"""Empty resources: what stands in the place of one that a proxy rejects, and that has never been good."""

from meshwright.sidecars.envoy.routes.renewal import RENEWAL
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.route.v3 import route_pb2
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, ROUTE, Reference, Resource, encode


def empty(key: Reference) -> Resource | None:
    """Return a resource of that type and name that refers to nothing and lets nothing pass.

    A route configuration without routes (404), a cluster and a load assignment without endpoints (503). None
    for listeners, which nothing refers to, and for secrets, for which nothing can stand.
    """
    type_url, name = key
    if type_url == ROUTE:
        return encode(route_pb2.RouteConfiguration(name=name), renewal=RENEWAL)
    if type_url == ENDPOINT:
        return encode(endpoint_pb2.ClusterLoadAssignment(cluster_name=name))
    if type_url == CLUSTER:
        static = cluster_pb2.Cluster(name=name, type=cluster_pb2.Cluster.DiscoveryType.STATIC)
        static.load_assignment.cluster_name = name
        return encode(static)
    return None
