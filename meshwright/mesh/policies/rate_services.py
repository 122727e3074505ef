"""Rates that a service counts for all workloads together, and what it is told of a request to count it by.

It speaks `envoy.service.ratelimit.v3`; how much is too much, it knows by itself.
"""

from dataclasses import dataclass
from datetime import timedelta

from meshwright.mesh.host_port import HostPort


@dataclass(frozen=True, slots=True)
class GenericKey:
    """An entry that is the same for all requests."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """The caller's address, under the key `remote_address`."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The value of a header; a request without it makes no descriptor."""

    key: str
    name: str


@dataclass(frozen=True, slots=True)
class Exact:
    """A value in full."""

    text: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """What a value begins with."""

    text: str


@dataclass(frozen=True, slots=True)
class Suffix:
    """What a value ends with."""

    text: str


@dataclass(frozen=True, slots=True)
class Substring:
    """What is somewhere in a value."""

    text: str


@dataclass(frozen=True, slots=True)
class Regex:
    """An expression (RE2) that a value matches in full."""

    text: str


@dataclass(frozen=True, slots=True)
class HeaderPresence:
    """Whether there is such a header at all."""

    wanted: bool


HeaderValue = Exact | Prefix | Suffix | Substring | Regex | HeaderPresence


@dataclass(frozen=True, slots=True)
class HeaderCriterion:
    """What a header has to be."""

    name: str
    value: HeaderValue


@dataclass(frozen=True, slots=True)
class HeaderValueMatch:
    """An entry for requests all of whose headers are so; with `expected` false for all others."""

    key: str
    value: str
    headers: tuple[HeaderCriterion, ...]
    expected: bool = True


Entry = GenericKey | RemoteAddress | RequestHeader | HeaderValueMatch
Descriptor = tuple[Entry, ...]
"""What is counted together. A request that lacks one of its entries is not counted by it."""


@dataclass(frozen=True, slots=True)
class RateLimitService:
    """Who is asked, and how long an answer is waited for.

    `domain` is what the service knows the limits by. Without an answer in time all pass, or with `fails_open`
    false none.
    """

    server: HostPort
    domain: str
    timeout: timedelta = timedelta(milliseconds=20)
    fails_open: bool = True


@dataclass(frozen=True, slots=True)
class CountedConnections:
    """Of each connection the service is told all descriptors: keys with values."""

    asked: RateLimitService
    descriptors: tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True, slots=True)
class CountedRequests:
    """Of each request the service is told the descriptors that fit it; what is over is answered `status`.

    `shows_limits`: answers say what is left, in X-RateLimit headers.
    """

    asked: RateLimitService
    descriptors: tuple[Descriptor, ...]
    status: int = 429
    shows_limits: bool = False
