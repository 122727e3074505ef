"""The resource types we know, and the identifiers that name a resource."""

import sys
from typing import Final, NewType

TypeUrl = NewType("TypeUrl", str)
ResourceName = NewType("ResourceName", str)
Version = NewType("Version", str)
Reference = tuple[TypeUrl, ResourceName]

PREFIX: Final = "type.googleapis.com/"


def _of(message: str) -> TypeUrl:
    """Return the type URL of a message: the very string that its resources have, and requests for them."""
    return TypeUrl(sys.intern(PREFIX + message))


CLUSTER: Final = _of("envoy.config.cluster.v3.Cluster")
ENDPOINT: Final = _of("envoy.config.endpoint.v3.ClusterLoadAssignment")
SECRET: Final = _of("envoy.extensions.transport_sockets.tls.v3.Secret")
LISTENER: Final = _of("envoy.config.listener.v3.Listener")
ROUTE: Final = _of("envoy.config.route.v3.RouteConfiguration")

TYPES: Final = (CLUSTER, ENDPOINT, SECRET, LISTENER, ROUTE)
"""The types we know, in the order of a push (xDS protocol, "eventual consistency considerations")."""
