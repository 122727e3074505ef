"""Circuit breakers: limits on concurrent use of a cluster. Without limits Envoy applies defaults."""

from functools import lru_cache
from typing import Final

from google.protobuf.wrappers_pb2 import UInt32Value

from meshwright.mesh.policies.limits import ConnectionLimits
from protos.envoy.config.cluster.v3 import circuit_breaker_pb2

ALIKE: Final = 64
"""Number of cached circuit breakers."""

UNLIMITED: Final = ConnectionLimits()
_NO_LIMIT: Final = 2**32 - 1
_CircuitBreakers = circuit_breaker_pb2.CircuitBreakers


@lru_cache(ALIKE)
def circuit_breakers(limits: ConnectionLimits = UNLIMITED) -> _CircuitBreakers:
    """Return the thresholds of a cluster. A missing limit removes Envoy's default of 1024.

    Envoy reports the remaining capacity as a metric if any limit is set.
    """
    threshold = _CircuitBreakers.Thresholds(
        max_connections=_value(limits.connections),
        max_pending_requests=_value(limits.pending_requests),
        max_requests=_value(limits.requests),
        max_retries=_value(limits.retries),
        track_remaining=limits != UNLIMITED,
    )
    return _CircuitBreakers(thresholds=[threshold])


def _value(limit: int | None) -> UInt32Value:
    return UInt32Value(value=_NO_LIMIT if limit is None else limit)
