"""The known resource types, and the identifiers that name a resource."""

import sys
from typing import Final, NewType

TypeUrl = NewType("TypeUrl", str)
ResourceName = NewType("ResourceName", str)
Version = NewType("Version", str)
Reference = tuple[TypeUrl, ResourceName]

PREFIX: Final = "type.googleapis.com/"


def _of(message: str) -> TypeUrl:
    """Return the type URL of a message, interned: resources and requests for them share one string."""
    return TypeUrl(sys.intern(PREFIX + message))


CLUSTER: Final = _of("envoy.config.cluster.v3.Cluster")
ENDPOINT: Final = _of("envoy.config.endpoint.v3.ClusterLoadAssignment")
SECRET: Final = _of("envoy.extensions.transport_sockets.tls.v3.Secret")
LISTENER: Final = _of("envoy.config.listener.v3.Listener")
ROUTE: Final = _of("envoy.config.route.v3.RouteConfiguration")

TYPES: Final = (CLUSTER, ENDPOINT, SECRET, LISTENER, ROUTE)
"""The known types in push order (xDS protocol, "eventual consistency considerations")."""
