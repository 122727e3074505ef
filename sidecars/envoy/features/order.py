"""The features of HTTP, and in which order: where filters stand is said here and nowhere else.

A request goes through the filters of a connection manager in the order in which they are written, the answer
through those that can change it in reverse (Envoy's documentation, "HTTP filters", "Filter chain"). So:

1. who is admitted (`access`): a request that the mesh refuses costs nothing further, and whatever stands
   behind may rely on the rules having been obeyed. What asks somebody else about a request (external
   authorization), or counts it (rate limits), comes after it, what changes or delays it (faults) after those;
2. `router`, which is terminal: Envoy demands that it is the last.

What is no filter decides before any of them: Envoy reads a request's headers, judges their size (`limits`),
and makes its path what it is to be (`paths`), then looks for a route, and begins with the filters.
"""

from typing import Final

from catalog.policy.proxy import InboundPort, OutboundService
from mesh.names import TrustDomain
from sidecars.envoy.features.access import Access
from sidecars.envoy.features.feature import Feature
from sidecars.envoy.features.limits import Limits
from sidecars.envoy.features.paths import Paths
from sidecars.envoy.features.request_log import RequestLog
from sidecars.envoy.features.router import Router
from sidecars.envoy.features.upgrades import Upgrades

_OF_ALL: Final = (Limits(), Upgrades(), RequestLog())
_ROUTER: Final = Router()


def inbound(trust_domain: TrustDomain, port: InboundPort) -> tuple[Feature, ...]:
    """Return the features of an inbound port."""
    access = Access(port.access, trust_domain)
    return (*_OF_ALL, Paths(port.escaped_slashes, guarded=True), access, _ROUTER)


def outbound(service: OutboundService) -> tuple[Feature, ...]:
    """Return the features of calls to a service: those of the service alone, so that callers share them."""
    return (*_OF_ALL, Paths(service.escaped_slashes), _ROUTER)
