"""How much a host is to bear: how many connections and requests at once, and how many in a time."""

import enum
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from meshwright.mesh.policies.rate_services import (
    CountedConnections,
    CountedRequests,
    Descriptor,
    RateLimitService,
)
from meshwright.mesh.policies.smi import PolicyKey


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
    """The rate of requests whose path without the query `path_regex` (RE2) matches in full.

    `limit`: what each workload counts, None where it counts them among all. `descriptors`: what a service is
    told of them in place of what it is told of all; empty, the same.
    """

    path_regex: str
    limit: RateLimit | None
    descriptors: tuple[Descriptor, ...] = ()


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What a workload takes at a port: connections, and requests. The first of `routes` that fits decides.

    A request that is one of a route's is counted there, and not among `requests`. What a service counts for
    all workloads together comes on top of that: `counted_connections`, `counted_requests`.
    """

    connections: RateLimit | None = None
    requests: RateLimit | None = None
    routes: tuple[RouteRate, ...] = ()
    counted_connections: CountedConnections | None = None
    counted_requests: CountedRequests | None = None

    @property
    def of_requests(self) -> bool:
        """Say whether a workload counts requests by itself."""
        return self.requests is not None or any(each.limit is not None for each in self.routes)

    @property
    def looks_at_requests(self) -> bool:
        """Say whether anybody counts requests."""
        return self.of_requests or self.counted_requests is not None

    @property
    def of_connections(self) -> Self:
        """What of it holds where no request is seen."""
        return type(self)(self.connections, counted_connections=self.counted_connections)

    @property
    def services(self) -> tuple[RateLimitService, ...]:
        """Who is asked."""
        found = (self.counted_connections, self.counted_requests)
        return tuple(each.asked for each in found if each is not None)


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
