"""Retries by callers: OSM's Retry as a value."""

import enum
from dataclasses import dataclass
from datetime import timedelta

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


class RetryCondition(enum.StrEnum):
    """Retriable failure of a request, in Envoy's terms; the last five are for gRPC."""

    SERVER_ERROR = "5xx"
    GATEWAY_ERROR = "gateway-error"
    RESET = "reset"
    RESET_BEFORE_REQUEST = "reset-before-request"
    CONNECT_FAILURE = "connect-failure"
    RATE_LIMITED = "envoy-ratelimited"
    CONFLICT = "retriable-4xx"
    REFUSED_STREAM = "refused-stream"
    CANCELLED = "cancelled"
    DEADLINE_EXCEEDED = "deadline-exceeded"
    INTERNAL = "internal"
    RESOURCE_EXHAUSTED = "resource-exhausted"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Retries:
    """Retries, at most `attempts`, of a request after a failure in `on`.

    Before the first retry there is a random delay up to `base`; the limit about doubles each time, up to ten
    times `base`. An attempt longer than `per_try` counts as failed; None turns this limit off. For example,
    with a base of 25 ms: up to 25, 50, 100 ms.
    """

    on: tuple[RetryCondition, ...]
    attempts: int = 1
    per_try: timedelta | None = None
    base: timedelta = timedelta(milliseconds=25)


@dataclass(frozen=True, slots=True)
class Retry:
    """policy.openservicemesh.io Retry: retries of a source's calls to these services.

    `created` is `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: PolicyKey
    source: ServiceIdentity
    destinations: tuple[ServiceKey, ...]
    retries: Retries
    created: str = ""
