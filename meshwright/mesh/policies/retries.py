"""What is tried again by who calls: OSM's Retry as a value."""

import enum
from dataclasses import dataclass
from datetime import timedelta

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey


class RetryCondition(enum.StrEnum):
    """What became of a request that may be tried again, in Envoy's words; the last five are gRPC's."""

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
    """A request that failed with one of `on` is tried again, at most `attempts` times.

    Between two tries there is a random time below `base`, then below about twice as much and so on, up to ten
    times as much. A try that takes longer than `per_try` has failed; None: it may take any time.
    """

    on: tuple[RetryCondition, ...]
    attempts: int = 1
    per_try: timedelta | None = None
    base: timedelta = timedelta(milliseconds=25)


@dataclass(frozen=True, slots=True)
class Retry:
    """policy.openservicemesh.io Retry: what a source tries again of its calls to these services.

    `created` is `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
    """

    key: PolicyKey
    source: ServiceIdentity
    destinations: tuple[ServiceKey, ...]
    retries: Retries
    created: str = ""
