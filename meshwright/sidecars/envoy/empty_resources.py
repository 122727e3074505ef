"""Empty resources: substitutes for a rejected resource without an earlier accepted version."""

from meshwright.sidecars.envoy.routes.renewal import RENEWAL
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.route.v3 import route_pb2
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, ROUTE, Reference, Resource, encode


def empty(key: Reference) -> Resource | None:
    """Return a resource of this type and name without references, which blocks all traffic.

    A route configuration without routes (status 404), or a cluster or load assignment without endpoints
    (status 503). `None` for listeners, because other resources never refer to them, and for secrets, because
    they have no substitute.
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
