"""The resource types we know, and the identifiers that name a resource."""

from typing import Final, NewType

TypeUrl = NewType("TypeUrl", str)
ResourceName = NewType("ResourceName", str)
Version = NewType("Version", str)
Reference = tuple[TypeUrl, ResourceName]

PREFIX: Final = "type.googleapis.com/"
CLUSTER: Final = TypeUrl(PREFIX + "envoy.config.cluster.v3.Cluster")
ENDPOINT: Final = TypeUrl(PREFIX + "envoy.config.endpoint.v3.ClusterLoadAssignment")
SECRET: Final = TypeUrl(PREFIX + "envoy.extensions.transport_sockets.tls.v3.Secret")
LISTENER: Final = TypeUrl(PREFIX + "envoy.config.listener.v3.Listener")
ROUTE: Final = TypeUrl(PREFIX + "envoy.config.route.v3.RouteConfiguration")

TYPES: Final = (CLUSTER, ENDPOINT, SECRET, LISTENER, ROUTE)
"""The types we know, in the order of a push (xDS protocol, "eventual consistency considerations")."""
