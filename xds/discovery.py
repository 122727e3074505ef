"""The discovery services: their methods, and the resource type of each method."""

from dataclasses import dataclass
from typing import Final

from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, TypeUrl
from xds.stream_status import Variant

AGGREGATED: Final = "envoy.service.discovery.v3.AggregatedDiscoveryService"
CLIENT_STATUS: Final = "envoy.service.status.v3.ClientStatusDiscoveryService"
HEALTH: Final = "grpc.health.v1.Health"

REASON: Final = "meshwright-reason"
"""Trailer with one word as the reason of a refusal, or of an empty configuration.

Example: `meshwright-reason: held`.
"""


@dataclass(frozen=True, slots=True)
class Discovery:
    """A streaming method.

    `type_url` is None on the aggregated service, where a stream may request any type.
    """

    service: str
    method: str
    variant: Variant
    type_url: TypeUrl | None = None


def _pair(service: str, noun: str, type_url: TypeUrl | None) -> tuple[Discovery, Discovery]:
    return (
        Discovery(service, f"Stream{noun}", Variant.SOTW, type_url),
        Discovery(service, f"Delta{noun}", Variant.DELTA, type_url),
    )


_PACKAGE: Final = AGGREGATED.rpartition(".")[0]

DISCOVERY: Final = (
    *_pair(AGGREGATED, "AggregatedResources", None),
    *_pair(f"{_PACKAGE.replace('discovery', 'listener')}.ListenerDiscoveryService", "Listeners", LISTENER),
    *_pair(f"{_PACKAGE.replace('discovery', 'cluster')}.ClusterDiscoveryService", "Clusters", CLUSTER),
    *_pair(f"{_PACKAGE.replace('discovery', 'endpoint')}.EndpointDiscoveryService", "Endpoints", ENDPOINT),
    *_pair(f"{_PACKAGE.replace('discovery', 'route')}.RouteDiscoveryService", "Routes", ROUTE),
    *_pair(f"{_PACKAGE.replace('discovery', 'secret')}.SecretDiscoveryService", "Secrets", SECRET),
)
"""Every served streaming method (xDS protocol, "RPC services").

Fetch methods are REST and not served.
"""
