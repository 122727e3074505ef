"""Rates counted by a service for all workloads together, and the descriptors for counting.

The service implements `envoy.service.ratelimit.v3`, and has the limits in its own settings.
"""

from dataclasses import dataclass
from datetime import timedelta

from meshwright.mesh.host_port import HostPort


@dataclass(frozen=True, slots=True)
class GenericKey:
    """Entry of a descriptor that is the same for all requests."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """Entry of a descriptor with the caller's address, under the key `remote_address`."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """Entry with the value of a header; a request without the header is without the descriptor."""

    key: str
    name: str


@dataclass(frozen=True, slots=True)
class Exact:
    """Match of a header's whole value."""

    text: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """Match of the start of a header's value."""

    text: str


@dataclass(frozen=True, slots=True)
class Suffix:
    """Match of the end of a header's value."""

    text: str


@dataclass(frozen=True, slots=True)
class Substring:
    """Match of any part of a header's value."""

    text: str


@dataclass(frozen=True, slots=True)
class Regex:
    """Match of a header's whole value by a regular expression (RE2)."""

    text: str


@dataclass(frozen=True, slots=True)
class HeaderPresence:
    """Match of the presence (`wanted`) or the absence of a header."""

    wanted: bool


HeaderValue = Exact | Prefix | Suffix | Substring | Regex | HeaderPresence


@dataclass(frozen=True, slots=True)
class HeaderCriterion:
    """Criterion for one header of a request."""

    name: str
    value: HeaderValue


@dataclass(frozen=True, slots=True)
class HeaderValueMatch:
    """Entry of a descriptor for requests with all `headers` matching.

    With `expected` false, for all other requests.
    """

    key: str
    value: str
    headers: tuple[HeaderCriterion, ...]
    expected: bool = True


Entry = GenericKey | RemoteAddress | RequestHeader | HeaderValueMatch
Descriptor = tuple[Entry, ...]
"""Entries for counting requests together. A request without one of the entries is not counted.

For example: `generic_key` is `shop`, and `user` is `alice`.
"""


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
    """Descriptors (keys with values) sent to the rate limit service for each connection."""

    asked: RateLimitService
    descriptors: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class CountedRequests:
    """Descriptors sent to the service for each request.

    A request above the limit is answered with `status`.

    With `shows_limits` answers have X-RateLimit headers with the remaining amount.
    """

    asked: RateLimitService
    descriptors: tuple[Descriptor, ...]
    status: int = 429
    shows_limits: bool = False
