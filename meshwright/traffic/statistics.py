"""What a proxy counts of calls: who called whom, and in numbers how that went. Values.

All numbers are of a span of time, and may be added.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from operator import add
from typing import Final, Self

BOUNDS_MS: Final = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000)
"""A time is counted below the first of these that is longer, or behind them.

Each is where a bin of Envoy's histograms begins, which has two digits: nothing is guessed.
"""
CLASSES: Final = 5
TIMES: Final = len(BOUNDS_MS) + 1


class Direction(enum.StrEnum):
    """On which side of a call the proxy stands that counts it."""

    OUTBOUND = "outbound"
    INBOUND = "inbound"


class Protocol(enum.StrEnum):
    """What a call is for the proxy."""

    HTTP = "http"
    TCP = "tcp"


@dataclass(frozen=True, slots=True, order=True)
class CalledPort:
    """A port of a service; without namespace and service a port that is called, by nobody in particular.

    A target port that has a name has that, and the number 0.
    """

    namespace: str
    service: str
    port: int
    port_name: str = ""


OTHERS: Final = CalledPort("", "others", 0)
"""All that have no row of their own, together."""


class Kind(enum.StrEnum):
    """Of what the numbers are."""

    EDGE = "edge"
    """All calls to a service, or all that come in by a port."""
    BACKEND = "backend"
    """What one of the services behind another had of them."""
    ROUTE = "route"
    """Those that a route's match was for."""


@dataclass(frozen=True, slots=True, order=True)
class Calls:
    """The calls that numbers are of, seen from a proxy; `route` is the name of one."""

    kind: Kind
    direction: Direction
    protocol: Protocol
    called: CalledPort
    route: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers of calls.

    `by_class` has the requests answered with 1xx to 5xx, `by_time` how many took less than each of
    BOUNDS_MS and not less than the one before, the last how many took longer; `milliseconds` are their
    times together.
    `opened` and `failed` are connections, `tls` are handshakes that came to their end, with
    both certificates as sidecars ask for them. `sent_bytes` go from the caller to the called.
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
    def of(cls, numbers: Iterable[int]) -> Self:
        """Return what `numbers` of another gave."""
        every = tuple(numbers)
        rest = CLASSES + TIMES
        return cls(every[:CLASSES], every[CLASSES:rest], *every[rest:])

    def numbers(self) -> tuple[int, ...]:
        """Return all numbers, in the order of the fields."""
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
        """Return both together."""
        return type(self).of(map(add, self.numbers(), other.numbers()))

    @property
    def requests(self) -> int:
        """Requests that were answered."""
        return sum(self.by_class)

    @property
    def failures(self) -> int:
        """Requests that the server failed: answered with 5xx, or by gRPC with another status than OK.

        Of gRPC whatever is no OK, as the caller is not told otherwise whose fault it was.
        """
        return min(self.requests, self.by_class[4] + self.grpc_failed)

    @property
    def success(self) -> float | None:
        """The part of the requests that did not fail; None of none."""
        return None if not self.requests else 1 - self.failures / self.requests

    def quantile_ms(self, part: float) -> float | None:
        """Return the time within which `part` (0 to 1) of the requests were answered, None of none.

        Within a span of BOUNDS_MS times are taken for evenly spread, as Prometheus' histogram_quantile does;
        beyond the last its bound is the answer.
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
    """What rows are asked of."""

    SERVICES = "services"
    PROXIES = "proxies"
    EDGES = "edges"
    ROUTES = "routes"
    BACKENDS = "backends"


@dataclass(frozen=True, slots=True)
class Report:
    """What a proxy has counted since its report before: `number` of its `run`, over `seconds`."""

    run: str
    number: int
    seconds: float
    rows: tuple[tuple[Calls, Figures], ...]
