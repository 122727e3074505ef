"""What a proxy counted, per edge, backend and route: Envoy's statistics by whose calls they are. Pure.

An edge is counted where it begins: the caller's proxy knows both its ends. Where it ends, a proxy counts what
comes in by port, of all callers together.
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
"""With these a proxy has less than 2000 series, whatever it calls and whatever is answered."""

GRPC_FAILED: Final = "grpc.failure"

OTHERS: Final = StatTarget("", "others", "")
"""All that have no series of their own, together."""


@dataclass(frozen=True, slots=True)
class WorkloadLabels:
    """The workload: the service and namespace of its proxy's name, and its ServiceAccount if it is known."""

    namespace: str
    service: str
    account: str = ""


def ends(direction: Direction, at: StatTarget, who: WorkloadLabels) -> Labels:
    """Return how Prometheus knows both ends of a call; the callers are not known where calls come in."""
    here, there = (who.namespace, who.service, who.account), (at.namespace, at.service, "")
    both = (here, there) if direction is Direction.OUTBOUND else (("", "", ""), here)
    parts = ("namespace", "service", "service_account")
    named = (
        (f"{end}_{part}", value)
        for end, said in zip(("source", "destination"), both, strict=True)
        for part, value in zip(parts, said, strict=True)
    )
    return (("direction", direction), *named, ("destination_port", at.port))


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """Calls of one kind from or to a workload; `called` has the port alone where they come in."""

    direction: Direction
    protocol: str
    called: StatTarget

    def others(self) -> "Edge":
        """Return the edge that stands for those of its kind without series of their own."""
        return Edge(self.direction, self.protocol, OTHERS)

    def labels(self, who: WorkloadLabels) -> Labels:
        """Return how Prometheus knows it."""
        return (*ends(self.direction, self.called, who), ("protocol", self.protocol))


@dataclass(frozen=True, slots=True, order=True)
class Route:
    """A route that calls to a service may take, or a match by which they come in, as policy names it.

    `called` has the port alone where they come in.
    """

    direction: Direction
    called: StatTarget
    name: str

    def others(self) -> "Route":
        """Return the route that stands for those of its direction without series of their own."""
        return Route(self.direction, OTHERS, "others")


Key = TypeVar("Key", Edge, StatTarget, Route)
AnyKey = TypeVar("AnyKey", bound=Hashable)


class BoundedSeries(Generic[AnyKey]):
    """Few series, however many are called: the first have series of their own, all others one together.

    Who has series of its own keeps them, so that no counter of Prometheus' ever goes back.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._own: set[AnyKey] = set()

    def own(self, seen: Mapping[AnyKey, int]) -> frozenset[AnyKey]:
        """Return who of these has series of its own; of several new ones those that are used most."""
        room = self._most - len(self._own)
        new = [(-count, str(key), key) for key, count in seen.items() if key not in self._own]
        new.sort(key=lambda each: each[:2])
        self._own.update(key for *_, key in new[:room])
        return frozenset(self._own & seen.keys())


@dataclass(slots=True)
class EdgeTotals:
    """What was counted for one edge or backend, of all statistics that come to it."""

    numbers: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    times: list[Bin] = field(default_factory=list)

    def add(self, numbers: Mapping[str, int], times: Iterable[Bin]) -> None:
        """Take more into it."""
        for what, value in numbers.items():
            self.numbers[what] += value
        self.times += times


Raw = tuple[Mapping[str, int], tuple[Bin, ...]]
"""Numbers and times as Envoy has them."""


EDGES_BY: Final = ("downstream_cx_total",)
BACKENDS_BY: Final = ("upstream_cx_total",)
ROUTES_BY: Final = tuple(f"upstream_rq_{digit}xx" for digit in range(1, 6))
"""By what each is used much or little: a route has no connections, and what always fails is used, too."""


def _gathered(
    found: Iterable[tuple[Key, Raw]],
    bounded: BoundedSeries[Key],
    others: Callable[[Key], Key],
    by: Iterable[str],
) -> dict[Key, EdgeTotals]:
    """Return what was counted for each that has series of its own, and for the others together.

    Of new ones those come first that are used most, `by` these numbers together.
    """
    every = list(found)
    used: defaultdict[Key, int] = defaultdict(int)
    for key, (numbers, _) in every:
        used[key] += sum(numbers.get(each, 0) for each in by)
    own = bounded.own(used)
    made: defaultdict[Key, EdgeTotals] = defaultdict(EdgeTotals)
    for key, raw in every:
        made[key if key in own else others(key)].add(*raw)
    return dict(sorted(made.items(), key=lambda each: each[0]))


@dataclass(frozen=True, slots=True)
class Rows:
    """What was counted, of each that has a row of its own and of the others together; all sorted."""

    edges: Mapping[Edge, EdgeTotals]
    backends: Mapping[StatTarget, EdgeTotals]
    routes: Mapping[Route, EdgeTotals]


class OwnRows:
    """Which edges, backends and routes have rows of their own: the first that were used, for good."""

    def __init__(self) -> None:
        self._edges = BoundedSeries[Edge](MOST_EDGES)
        self._backends = BoundedSeries[StatTarget](MOST_BACKENDS)
        self._routes = BoundedSeries[Route](MOST_ROUTES)

    def of(self, found: Statistics) -> Rows:
        """Return the rows of what was counted."""
        return Rows(
            _gathered(edges_of(found), self._edges, Edge.others, EDGES_BY),
            _gathered(backends_of(found), self._backends, lambda _: OTHERS, BACKENDS_BY),
            _gathered(routes_of(found), self._routes, Route.others, ROUTES_BY),
        )


def edges_of(found: Statistics) -> Iterator[tuple[Edge, Raw]]:
    """Yield what was counted of each edge, more than once where several statistics are of it."""
    for protocol in ("http", "tcp"):
        for prefix, raw in _each(found, protocol):
            if (to := called(prefix)) is not None:
                yield Edge(Direction.OUTBOUND, protocol, to), raw
            elif (port := received_at(prefix)) is not None:
                yield Edge(Direction.INBOUND, protocol, StatTarget("", "", port)), raw
    yield from _grpc_failures(found)


def _grpc_failures(found: Statistics) -> Iterator[tuple[Edge, Raw]]:
    """Yield how many calls of gRPC failed, which Envoy counts by cluster, of the edges that clusters are of.

    A cluster is of the edge to its service, of several the one whose port it has; behind a TrafficSplit it
    is of the backend alone.
    """
    failed = [
        (of, each) for of, numbers in found.numbers["cluster"].items() if (each := numbers.get(GRPC_FAILED))
    ]
    to = defaultdict[tuple[str, str], list[StatTarget]](list)
    for service in map(called, found.numbers["http"]) if failed else ():
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


def routes_of(found: Statistics) -> Iterator[tuple[Route, Raw]]:
    """Yield what was counted of each route that is counted for itself, likewise."""
    for prefix, raw in _each(found, "vhost"):
        if (at := route(prefix)) is not None:
            yield Route(Direction.OUTBOUND, *at), raw
        elif (by := admitted_by(prefix)) is not None:
            yield Route(Direction.INBOUND, StatTarget("", "", by[0]), by[1]), raw


def backends_of(found: Statistics) -> Iterator[tuple[StatTarget, Raw]]:
    """Yield what was counted of each backend, likewise."""
    for cluster, raw in _each(found, "cluster"):
        if (at := backend(cluster)) is not None:
            yield at, raw


def _each(found: Statistics, scope: str) -> Iterator[tuple[str, Raw]]:
    """Yield numbers and times of each; Envoy tells times later than numbers: there may be the one alone."""
    numbers, times = found.numbers[scope], found.times[scope]
    for each in dict.fromkeys((*numbers, *times)):
        yield each, (numbers.get(each, {}), times.get(each, ()))
