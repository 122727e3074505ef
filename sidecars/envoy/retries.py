"""Retry policies in Envoy's words."""

from datetime import timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from mesh.retries import Retries
from protos.envoy.config.route.v3 import route_components_pb2

MOST: Final = 10
"""How many times the base is the longest time between two tries: Open Service Mesh's, and Envoy's default."""

_Policy = route_components_pb2.RetryPolicy


def policy(retries: Retries) -> _Policy:
    """Return the retry policy of a route."""
    back_off = _Policy.RetryBackOff(
        base_interval=_duration(retries.base), max_interval=_duration(MOST * retries.base)
    )
    return _Policy(
        retry_on=",".join(retries.on),
        num_retries=UInt32Value(value=retries.attempts),
        per_try_timeout=None if retries.per_try is None else _duration(retries.per_try),
        retry_back_off=back_off,
    )


def _duration(time: timedelta) -> Duration:
    found = Duration()
    found.FromTimedelta(time)
    return found
