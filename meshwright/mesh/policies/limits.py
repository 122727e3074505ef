"""Limits of calls to a host: concurrent connections and requests, and rates."""

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
    """Period in which a rate limit counts connections or requests."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"

    @property
    def period(self) -> timedelta:
        """Length of the period."""
        return timedelta(**{f"{self.value}s": 1})


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Limit of connections or requests in each period, with at most `burst` more at once.

    A connection over the limit is closed; a request is answered with `status` and `headers`.
    """

    amount: int
    unit: RateUnit
    burst: int = 0
    status: int = 429
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RouteRate:
    """Rate of requests with a path, without the query, fully matching `path_regex` (RE2).

    `limit` is counted by each workload; None counts them with all other requests. `descriptors` replace the
    port's descriptors for these requests, unless empty.
    """

    path_regex: str
    limit: RateLimit | None
    descriptors: tuple[Descriptor, ...] = ()


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Rates at a port of a workload: connections and requests. The first matching route decides.

    A request of a route is counted there, and not in `requests`. The rates of a service for all workloads
    together apply in addition: `counted_connections`, `counted_requests`.
    """

    connections: RateLimit | None = None
    requests: RateLimit | None = None
    routes: tuple[RouteRate, ...] = ()
    counted_connections: CountedConnections | None = None
    counted_requests: CountedRequests | None = None

    @property
    def of_requests(self) -> bool:
        """Return whether the workload's proxy has a request limit that it counts alone."""
        return self.requests is not None or any(route.limit is not None for route in self.routes)

    @property
    def looks_at_requests(self) -> bool:
        """Return whether the workload's proxy or a rate limit service counts requests."""
        return self.of_requests or self.counted_requests is not None

    @property
    def of_connections(self) -> Self:
        """The limits on connections only, for ports where the proxy does not see requests."""
        return type(self)(self.connections, counted_connections=self.counted_connections)

    @property
    def services(self) -> tuple[RateLimitService, ...]:
        """The rate limit services that the workload's proxy asks."""
        result = (self.counted_connections, self.counted_requests)
        return tuple(item.asked for item in result if item is not None)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of each caller's proxy for a host; None for the mesh's own limit, if any.

    `pending_requests` wait for a connection, `retries` run concurrently. A connection serves
    `requests_per_connection` (0: any number), and must be established within `connect_timeout`.
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

    `host` is the name of a service, or of a host outside the mesh, in lower case. `created` is
    `metadata.creationTimestamp` as written, or empty; the age decides precedence.
    """

    key: PolicyKey
    host: str
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    rates: RateLimits = field(default_factory=RateLimits)
    created: str = ""
