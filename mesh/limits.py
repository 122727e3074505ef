"""How much a host is to bear: how many connections and requests at once, and how many in a time."""

import enum
from dataclasses import dataclass, field
from datetime import timedelta

from mesh.policy import PolicyKey


class RateUnit(enum.StrEnum):
    """The time for which connections or requests are counted."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"

    @property
    def period(self) -> timedelta:
        """How long it is."""
        return timedelta(**{f"{self.value}s": 1})


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many connections or requests in each unit of time, and at most `burst` more at once.

    What is over it is not taken: a connection is closed, a request answered with `status` and `headers`.
    """

    amount: int
    unit: RateUnit
    burst: int = 0
    status: int = 429
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RouteRate:
    """The rate of requests whose path without the query `path_regex` (RE2) matches in full."""

    path_regex: str
    limit: RateLimit


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What a workload takes at a port: connections, and requests. The first of `routes` that fits decides.

    A request that is one of a route's is counted there, and not among `requests`.
    """

    connections: RateLimit | None = None
    requests: RateLimit | None = None
    routes: tuple[RouteRate, ...] = ()

    @property
    def of_requests(self) -> bool:
        """Say whether requests are counted."""
        return self.requests is not None or bool(self.routes)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What each caller's proxy lets go to a host at once; None is no limit, or the mesh's own.

    `pending_requests` wait for a connection, `retries` are under way at one time. A connection takes
    `requests_per_connection` one after the other (0: any number), and must be there within `connect_timeout`.
    """

    connections: int | None = None
    pending_requests: int | None = None
    requests: int | None = None
    requests_per_connection: int | None = None
    retries: int | None = None
    connect_timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class UpstreamTrafficSetting:
    """policy.openservicemesh.io UpstreamTrafficSetting: limits of calls to a host.

    `host` is the name of a service, or of a host outside the mesh: lower case. `created` is
    `metadata.creationTimestamp` as written, empty where there is none: it settles precedence.
    """

    key: PolicyKey
    host: str
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    rates: RateLimits = field(default_factory=RateLimits)
    created: str = ""
