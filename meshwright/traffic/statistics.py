"""Values of traffic statistics: caller, called port, and counts.

All counts belong to a span of time and can be added.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from operator import add
from typing import Final, Self

BOUNDS_MS: Final = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000)
"""Upper bounds (excluded) of the classes of response times, in milliseconds.

Slower requests are in a last class.

Each bound is a bound of a bin in Envoy's histograms, whose bins have two significant digits. So counts need
no interpolation.
"""
CLASSES: Final = 5
TIMES: Final = len(BOUNDS_MS) + 1


class Direction(enum.StrEnum):
    """Side of a call at which the proxy counts: the caller (OUTBOUND) or the called service (INBOUND)."""

    OUTBOUND = "outbound"
    INBOUND = "inbound"


class Protocol(enum.StrEnum):
    """Protocol of a call as the proxy handles it."""

    HTTP = "http"
    TCP = "tcp"


@dataclass(frozen=True, slots=True, order=True)
class CalledPort:
    """A port of a service, or an inbound port of the counting proxy if namespace and service are empty.

    A target port with a name has this name and the number 0.
    """

    namespace: str
    service: str
    port: int
    port_name: str = ""


OTHERS: Final = CalledPort("", "others", 0)
"""Sum of all calls without a row of their own."""


class Kind(enum.StrEnum):
    """Subject of statistics."""

    EDGE = "edge"
    """All calls to a service, or all calls to a port."""
    BACKEND = "backend"
    """The part of the calls to a service received by one backend."""
    ROUTE = "route"
    """The calls that match a route."""


@dataclass(frozen=True, slots=True, order=True)
class Calls:
    """The calls counted by a proxy under one key; `route` is the name of a route."""

    kind: Kind
    direction: Direction
    protocol: Protocol
    called: CalledPort
    route: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of calls.

    `by_class` counts responses with status 1xx to 5xx. `by_time` counts requests below each of BOUNDS_MS and
    not below the bound before, with slower requests at the end; `milliseconds` is the sum of their times.
    `opened` and `failed` count connections, `tls` counts completed handshakes with certificates on both
    sides. `sent_bytes` flow from the caller to the called.
    """

    by_class: tuple[int, ...] = (0,) * CLASSES
    by_time: tuple[int, ...] = (0,) * TIMES
    grpc_failed: int = 0
    retries: int = 0
    opened: int = 0
    failed: int = 0
    tls: int = 0
    milliseconds: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0

    @classmethod
    def from_numbers(cls, numbers: Iterable[int]) -> Self:
        """Return statistics from numbers in the order of the method `numbers`."""
        every = tuple(numbers)
        rest = CLASSES + TIMES
        return cls(every[:CLASSES], every[CLASSES:rest], *every[rest:])

    def numbers(self) -> tuple[int, ...]:
        """Return all numbers in the order of the fields."""
        return (
            *self.by_class,
            *self.by_time,
            self.grpc_failed,
            self.retries,
            self.opened,
            self.failed,
            self.tls,
            self.milliseconds,
            self.sent_bytes,
            self.received_bytes,
        )

    def __add__(self, other: Self) -> Self:
        """Return the sum of two statistics, number by number."""
        return type(self).from_numbers(map(add, self.numbers(), other.numbers()))

    @property
    def requests(self) -> int:
        """The number of answered requests."""
        return sum(self.by_class)

    @property
    def failures(self) -> int:
        """The number of failed requests: status 5xx, or a gRPC status other than OK.

        Every gRPC error counts, because the status does not show whether the server or the client is at
        fault.
        """
        return min(self.requests, self.by_class[4] + self.grpc_failed)

    @property
    def success(self) -> float | None:
        """The share of successful requests, from 0 to 1; `None` without requests."""
        return None if not self.requests else 1 - self.failures / self.requests

    def quantile_ms(self, part: float) -> float | None:
        """Return the time in milliseconds within which the share `part` (0 to 1) of requests was answered.

        `None` without requests. Within a class the times are assumed to be evenly spread, as in
        `histogram_quantile` of Prometheus. Beyond the last bound the result is this bound. For example,
        `quantile_ms(0.95)` is the 95th percentile.
        """
        total = sum(self.by_time)
        if not total:
            return None
        rank, below, least = part * total, 0, 0.0
        for bound, count in zip(BOUNDS_MS, self.by_time, strict=False):
            if count and below + count >= rank:
                return least + (bound - least) * max(0.0, rank - below) / count
            below, least = below + count, float(bound)
        return float(BOUNDS_MS[-1])


class RowKind(enum.StrEnum):
    """Subject of the rows of a traffic table: services, proxies, edges, routes or backends."""

    SERVICES = "services"
    PROXIES = "proxies"
    EDGES = "edges"
    ROUTES = "routes"
    BACKENDS = "backends"


@dataclass(frozen=True, slots=True)
class Report:
    """Counts of a proxy since its previous report: the report `number` of its `run`, over `seconds`."""

    run: str
    number: int
    seconds: float
    rows: tuple[tuple[Calls, Figures], ...]
