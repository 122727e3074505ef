"""Validation of resources by Envoy's rules, before they are sent."""

from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message

from meshwright.sidecars.envoy.validation import faults
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.route.v3 import route_pb2
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, Resource, TypeUrl

_MESSAGES: Final[dict[TypeUrl, type[Message]]] = {
    CLUSTER: cluster_pb2.Cluster,
    ENDPOINT: endpoint_pb2.ClusterLoadAssignment,
    LISTENER: listener_pb2.Listener,
    ROUTE: route_pb2.RouteConfiguration,
}


def judged(resource: Resource) -> tuple[str, ...]:
    """Return the reasons for which Envoy would reject a resource; secrets and unknown types pass."""
    message = _MESSAGES.get(resource.type_url)
    if message is None:
        return ()
    return tuple(map(str, faults(message.FromString(Any.FromString(resource.body).value))))
