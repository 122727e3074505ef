"""Local rate limits as Envoy messages: token buckets of each proxy.

A bucket holds amount plus burst, and gains the amount once per unit of time, all at once. Example: 10 per
second with a burst of 5 holds 15 tokens.
"""

from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import UInt32Value

from meshwright.mesh.policies.limits import RateLimit
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.rules.headers import header
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.listener.v3 import listener_components_pb2
from protos.envoy.extensions.filters.http.local_ratelimit.v3 import local_rate_limit_pb2 as http_pb2
from protos.envoy.extensions.filters.network.local_ratelimit.v3 import local_rate_limit_pb2 as network_pb2
from protos.envoy.type.v3 import http_status_pb2, percent_pb2, token_bucket_pb2

HTTP_FILTER: Final = "envoy.filters.http.local_ratelimit"
NETWORK_FILTER: Final = "envoy.filters.network.local_ratelimit"

_ALWAYS: Final = base_pb2.RuntimeFractionalPercent(
    default_value=percent_pb2.FractionalPercent(
        numerator=100, denominator=percent_pb2.FractionalPercent.DenominatorType.HUNDRED
    )
)


def of_connections(stat_prefix: str, limit: RateLimit) -> listener_components_pb2.Filter:
    """Return the network filter for counting connections, across all filter chains with the same prefix.

    Envoy counts a connection when accepted, before a handshake identifies the caller.
    """
    message = network_pb2.LocalRateLimit(
        stat_prefix=stat_prefix, token_bucket=_bucket(limit), share_key=stat_prefix
    )
    return listener_components_pb2.Filter(name=NETWORK_FILTER, typed_config=packed(message))


def of_requests(stat_prefix: str, limit: RateLimit | None = None) -> http_pb2.LocalRateLimit:
    """Return the configuration of the HTTP filter: a limit, or None to let all requests pass."""
    if limit is None:
        return http_pb2.LocalRateLimit(stat_prefix=stat_prefix)
    return http_pb2.LocalRateLimit(
        stat_prefix=stat_prefix,
        token_bucket=_bucket(limit),
        filter_enabled=_ALWAYS,
        filter_enforced=_ALWAYS,
        status=http_status_pb2.HttpStatus(code=http_status_pb2.StatusCode.Name(limit.status)),
        response_headers_to_add=[header(*item) for item in limit.headers],
        # Otherwise gRPC clients would treat it as an unavailable server, and retry at once.
        rate_limited_as_resource_exhausted=True,
    )


def _bucket(limit: RateLimit) -> token_bucket_pb2.TokenBucket:
    interval = Duration()
    interval.FromTimedelta(limit.unit.period)
    return token_bucket_pb2.TokenBucket(
        max_tokens=limit.amount + limit.burst,
        tokens_per_fill=UInt32Value(value=limit.amount),
        fill_interval=interval,
    )
