"""Circuit breakers: how much goes to a cluster at once. Envoy has limits of its own where it is told none."""

from functools import lru_cache
from typing import Final

from google.protobuf.wrappers_pb2 import UInt32Value

from meshwright.mesh.policies.limits import ConnectionLimits
from protos.envoy.config.cluster.v3 import circuit_breaker_pb2

ALIKE: Final = 64
"""Of how many limits the circuit breakers are remembered."""

UNLIMITED: Final = ConnectionLimits()
_NO_LIMIT: Final = 2**32 - 1
_CircuitBreakers = circuit_breaker_pb2.CircuitBreakers


@lru_cache(ALIKE)
def circuit_breakers(limits: ConnectionLimits = UNLIMITED) -> _CircuitBreakers:
    """Return the thresholds of a cluster; without a limit Envoy's default of 1024 is lifted.

    What is left of a limit is a metric of Envoy's where there is one to be looked at.
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
