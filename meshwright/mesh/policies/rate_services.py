"""Rates that a service counts for all workloads together, and the descriptors by which it counts.

The service implements `envoy.service.ratelimit.v3`, and knows the limits by itself.
"""

from dataclasses import dataclass
from datetime import timedelta

from meshwright.mesh.host_port import HostPort


@dataclass(frozen=True, slots=True)
class GenericKey:
    """Entry that is the same for all requests."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """Entry with the caller's address, under the key `remote_address`."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """Entry with the value of a header; a request without it has no descriptor."""

    key: str
    name: str


@dataclass(frozen=True, slots=True)
class Exact:
    """Match of a whole value."""

    text: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """Match of the start of a value."""

    text: str


@dataclass(frozen=True, slots=True)
class Suffix:
    """Match of the end of a value."""

    text: str


@dataclass(frozen=True, slots=True)
class Substring:
    """Match of any part of a value."""

    text: str


@dataclass(frozen=True, slots=True)
class Regex:
    """Match of a whole value by a regular expression (RE2)."""

    text: str


@dataclass(frozen=True, slots=True)
class HeaderPresence:
    """Match of the presence of a header."""

    wanted: bool


HeaderValue = Exact | Prefix | Suffix | Substring | Regex | HeaderPresence


@dataclass(frozen=True, slots=True)
class HeaderCriterion:
    """Criterion for one header."""

    name: str
    value: HeaderValue


@dataclass(frozen=True, slots=True)
class HeaderValueMatch:
    """Entry for requests whose headers all match; with `expected` false for all other requests."""

    key: str
    value: str
    headers: tuple[HeaderCriterion, ...]
    expected: bool = True


Entry = GenericKey | RemoteAddress | RequestHeader | HeaderValueMatch
Descriptor = tuple[Entry, ...]
"""Entries by which requests are counted together. A request that lacks one is not counted by it."""


@dataclass(frozen=True, slots=True)
class RateLimitService:
    """A rate limit service, and the limit of the wait for its answer.

    `domain` identifies the limits at the service. Without an answer in time requests pass; if `fails_open` is
    false, they are refused.
    """

    server: HostPort
    domain: str
    timeout: timedelta = timedelta(milliseconds=20)
    fails_open: bool = True


@dataclass(frozen=True, slots=True)
class CountedConnections:
    """Descriptors, keys with values, that are sent to the service for each connection."""

    asked: RateLimitService
    descriptors: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class CountedRequests:
    """Descriptors that are sent to the service for each request.

    Above the limit it is answered with `status`.

    With `shows_limits` answers have X-RateLimit headers with the remaining amount.
    """

    asked: RateLimitService
    descriptors: tuple[Descriptor, ...]
    status: int = 429
    shows_limits: bool = False
