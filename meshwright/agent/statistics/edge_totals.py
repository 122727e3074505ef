"""Sums of a proxy's counters per edge, backend and route. Pure.

An edge is counted at the caller, because the caller's proxy knows both ends. The called proxy counts inbound
calls by port, for all callers together.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from meshwright.agent.statistics.exposition import Labels
from meshwright.agent.statistics.statistics import Bin, Statistics
from meshwright.sidecars.envoy.telemetry.stat_names import (
    StatTarget,
    admitted_by,
    backend,
    behind,
    called,
    received_at,
    route,
)
from meshwright.traffic.statistics import Direction

MOST_EDGES: Final = 48
MOST_BACKENDS: Final = 64
MOST_ROUTES: Final = 24
"""Greatest numbers of rows, with which any proxy has fewer than 2000 series."""

GRPC_FAILED: Final = "grpc.failure"

OTHERS: Final = StatTarget("", "others", "")
"""The sum of everything without a separate series."""


@dataclass(frozen=True, slots=True)
class WorkloadLabels:
    """The proxy's own workload: service and namespace in the proxy's name, and ServiceAccount if known."""

    namespace: str
    service: str
    account: str = ""


def ends(direction: Direction, at: StatTarget, workload: WorkloadLabels) -> Labels:
    """Return the labels for both ends of a call; for inbound calls the callers are unknown."""
    here, there = (workload.namespace, workload.service, workload.account), (at.namespace, at.service, "")
    both = (here, there) if direction is Direction.OUTBOUND else (("", "", ""), here)
    parts = ("namespace", "service", "service_account")
    named = (
        (f"{end}_{part}", value)
        for end, lines in zip(("source", "destination"), both, strict=True)
        for part, value in zip(parts, lines, strict=True)
    )
    return (("direction", direction), *named, ("destination_port", at.port))


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """Calls of one protocol from or to a workload; for inbound calls `called` has only the port."""

    direction: Direction
    protocol: str
    called: StatTarget

    def others(self) -> "Edge":
        """Return the overflow edge, which counts all edges without a series of their own together."""
        return Edge(self.direction, self.protocol, OTHERS)

    def labels(self, workload: WorkloadLabels) -> Labels:
        """Return the Prometheus labels of the edge; `workload` is the proxy's own workload."""
        return (*ends(self.direction, self.called, workload), ("protocol", self.protocol))


@dataclass(frozen=True, slots=True, order=True)
class Route:
    """A route of outbound calls, or a match that admits inbound calls, with the name in the policy.

    For inbound calls `called` has only the port.
    """

    direction: Direction
    called: StatTarget
    name: str

    def others(self) -> "Route":
        """Return the overflow route, which counts all routes without a series of their own together."""
        return Route(self.direction, OTHERS, "others")


Key = TypeVar("Key", Edge, StatTarget, Route)
AnyKey = TypeVar("AnyKey", bound=Hashable)


class BoundedSeries(Generic[AnyKey]):
    """A limited number of series: the first keys get separate series, and all others share one.

    A key keeps the series, so that counters in Prometheus never decrease.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._own: set[AnyKey] = set()

    def own(self, seen: Mapping[AnyKey, int]) -> frozenset[AnyKey]:
        """Return the keys with their own series; among new keys the most used ones come first."""
        room = self._most - len(self._own)
        # The text of the key decides between equal counts, so that the choice does not depend on the order.
        new = [(-count, str(key), key) for key, count in seen.items() if key not in self._own]
        new.sort(key=lambda item: item[:2])
        self._own.update(key for *_, key in new[:room])
        return frozenset(self._own & seen.keys())


@dataclass(slots=True)
class EdgeTotals:
    """The sums of counters and latencies for one edge, backend or route."""

    numbers: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    times: list[Bin] = field(default_factory=list)

    def add(self, numbers: Mapping[str, int], times: Iterable[Bin]) -> None:
        """Add counters and latencies to the sums."""
        for what, value in numbers.items():
            self.numbers[what] += value
        self.times += times


Raw = tuple[Mapping[str, int], tuple[Bin, ...]]
"""Counters and times as Envoy reports them."""


EDGES_BY: Final = ("downstream_cx_total",)
BACKENDS_BY: Final = ("upstream_cx_total",)
ROUTES_BY: Final = tuple(f"upstream_rq_{digit}xx" for digit in range(1, 6))
"""Counters of use. Routes lack connections, and failing requests count too."""


def _gathered(
    result: Iterable[tuple[Key, Raw]],
    bounded: BoundedSeries[Key],
    others: Callable[[Key], Key],
    by: Iterable[str],
) -> dict[Key, EdgeTotals]:
    """Return the sums of each key with a separate series, and of the others together.

    Among new keys those with the highest sum of the counters `by` come first.
    """
    every = list(result)
    used: defaultdict[Key, int] = defaultdict(int)
    for key, (numbers, _) in every:
        used[key] += sum(numbers.get(item, 0) for item in by)
    own = bounded.own(used)
    made: defaultdict[Key, EdgeTotals] = defaultdict(EdgeTotals)
    for key, raw in every:
        made[key if key in own else others(key)].add(*raw)
    return dict(sorted(made.items(), key=lambda item: item[0]))


@dataclass(frozen=True, slots=True)
class Rows:
    """The sums for each edge, backend and route with an own series, and for the others together; sorted."""

    edges: Mapping[Edge, EdgeTotals]
    backends: Mapping[StatTarget, EdgeTotals]
    routes: Mapping[Route, EdgeTotals]


class OwnRows:
    """Assignment of separate series: the first edges, backends and routes in use keep theirs."""

    def __init__(self) -> None:
        self._edges = BoundedSeries[Edge](MOST_EDGES)
        self._backends = BoundedSeries[StatTarget](MOST_BACKENDS)
        self._routes = BoundedSeries[Route](MOST_ROUTES)

    def rows(self, statistics: Statistics) -> Rows:
        """Return the sums of a proxy's statistics, by series."""
        return Rows(
            _gathered(edges_of(statistics), self._edges, Edge.others, EDGES_BY),
            _gathered(backends_of(statistics), self._backends, lambda _: OTHERS, BACKENDS_BY),
            _gathered(routes_of(statistics), self._routes, Route.others, ROUTES_BY),
        )


def edges_of(statistics: Statistics) -> Iterator[tuple[Edge, Raw]]:
    """Yield the counters of each edge; several statistics may belong to one edge."""
    for protocol in ("http", "tcp"):
        for prefix, raw in _counters(statistics, protocol):
            if (to := called(prefix)) is not None:
                yield Edge(Direction.OUTBOUND, protocol, to), raw
            elif (port := received_at(prefix)) is not None:
                yield Edge(Direction.INBOUND, protocol, StatTarget("", "", port)), raw
    yield from _grpc_failures(statistics)


def _grpc_failures(statistics: Statistics) -> Iterator[tuple[Edge, Raw]]:
    """Yield failed gRPC calls per edge; Envoy counts them by cluster.

    A cluster belongs to the edge to the same service; of several edges, to the one with the same port. The
    failures of a TrafficSplit's backends count only for the backends.
    """
    failed = [
        (of, number)
        for of, numbers in statistics.numbers["cluster"].items()
        if (number := numbers.get(GRPC_FAILED))
    ]
    to = defaultdict[tuple[str, str], list[StatTarget]](list)
    for service in map(called, statistics.numbers["http"]) if failed else ():
        if service is not None:
            to[service.namespace, service.service].append(service)
    for cluster, count in failed:
        raw: Raw = ({GRPC_FAILED: count}, ())
        if (port := behind(cluster)) is not None:
            yield Edge(Direction.INBOUND, "http", StatTarget("", "", port)), raw
        elif (at := backend(cluster)) is not None:
            every = to[at.namespace, at.service]
            for service in every if len(every) == 1 else [it for it in every if it.port == at.port]:
                yield Edge(Direction.OUTBOUND, "http", service), raw


def routes_of(statistics: Statistics) -> Iterator[tuple[Route, Raw]]:
    """Yield the counters of each separately counted route."""
    for prefix, raw in _counters(statistics, "vhost"):
        if (at := route(prefix)) is not None:
            yield Route(Direction.OUTBOUND, *at), raw
        elif (by := admitted_by(prefix)) is not None:
            yield Route(Direction.INBOUND, StatTarget("", "", by[0]), by[1]), raw


def backends_of(statistics: Statistics) -> Iterator[tuple[StatTarget, Raw]]:
    """Yield the counters of each backend, with the latencies."""
    for cluster, raw in _counters(statistics, "cluster"):
        if (at := backend(cluster)) is not None:
            yield at, raw


def _counters(statistics: Statistics, scope: str) -> Iterator[tuple[str, Raw]]:
    """Yield counters and times of each key.

    One may be missing, because Envoy reports times later than counters.
    """
    numbers, times = statistics.numbers[scope], statistics.times[scope]
    for item in dict.fromkeys((*numbers, *times)):
        yield item, (numbers.get(item, {}), times.get(item, ()))
