"""What a proxy counted, per edge and per backend, in Prometheus' words.

An edge is counted where it begins: the caller's proxy knows both its ends. Where it ends, a proxy counts what
comes in by port, of all callers together.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from agent.figures.bounded import Bounded
from agent.figures.exposition import Family, Kind, Labels, Sample
from agent.figures.statistics import Bin, Statistics
from agent.figures.times import histogram, summary
from observed.figures import Direction
from sidecars.envoy.stat_names import Called, backend, called, received_at

MOST_EDGES: Final = 48
MOST_BACKENDS: Final = 64
"""With these a proxy has less than 2000 series, whatever it calls and whatever is answered."""

OTHERS: Final = Called("", "others", "")
"""All that have no series of their own, together."""


@dataclass(frozen=True, slots=True)
class Who:
    """The workload: the service and namespace of its proxy's name, and its ServiceAccount if it is known."""

    namespace: str
    service: str
    account: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """Calls of one kind from or to a workload; `called` has the port alone where they come in."""

    direction: Direction
    protocol: str
    called: Called

    def others(self) -> "Edge":
        """Return the edge that stands for those of its kind without series of their own."""
        return Edge(self.direction, self.protocol, OTHERS)

    def labels(self, who: Who) -> Labels:
        """Return how Prometheus knows it."""
        here = (who.namespace, who.service, who.account)
        there = (self.called.namespace, self.called.service, "")
        ends = (here, there) if self.direction is Direction.OUTBOUND else (("", "", ""), here)
        named = zip(("source", "destination"), ends, strict=True)
        parts = ("namespace", "service", "service_account")
        return (
            ("direction", self.direction),
            *(
                (f"{end}_{part}", value)
                for end, said in named
                for part, value in zip(parts, said, strict=True)
            ),
            ("destination_port", self.called.port),
            ("protocol", self.protocol),
        )


_Key = TypeVar("_Key", Edge, Called)


@dataclass(slots=True)
class Counted:
    """What was counted for one edge or backend, of all statistics that come to it."""

    numbers: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    times: list[Bin] = field(default_factory=list)

    def add(self, numbers: Mapping[str, int], times: Iterable[Bin]) -> None:
        """Take more into it."""
        for what, value in numbers.items():
            self.numbers[what] += value
        self.times += times


class Edges:
    """A proxy's edges and backends."""

    def __init__(self) -> None:
        self._edges = Bounded[Edge](MOST_EDGES)
        self._backends = Bounded[Called](MOST_BACKENDS)

    def families(self, found: Statistics, who: Who) -> tuple[Family, ...]:
        """Return all that is told of them, sorted; the same families whatever was called."""
        edges = gathered(edges_of(found), self._edges, Edge.others, "downstream_cx_total")
        backends = gathered(backends_of(found), self._backends, lambda _: OTHERS, "upstream_cx_total")
        return (
            *_edge_families([(edge.labels(who), counted) for edge, counted in _sorted(edges)]),
            *_backend_families([(_backend_labels(at, who), counted) for at, counted in _sorted(backends)]),
        )


def _sorted(found: Mapping[_Key, Counted]) -> list[tuple[_Key, Counted]]:
    """Return what was counted, sorted by what it was counted for."""
    return sorted(found.items(), key=lambda each: each[0])


_Raw = tuple[Mapping[str, int], tuple[Bin, ...]]


def gathered(
    found: Iterable[tuple[_Key, _Raw]], bounded: Bounded[_Key], others: Callable[[_Key], _Key], weight: str
) -> dict[_Key, Counted]:
    """Return what was counted for each that has series of its own, and for the others together."""
    every = list(found)
    used: defaultdict[_Key, int] = defaultdict(int)
    for key, (numbers, _) in every:
        used[key] += numbers.get(weight, 0)
    own = bounded.own(used)
    made: defaultdict[_Key, Counted] = defaultdict(Counted)
    for key, raw in every:
        made[key if key in own else others(key)].add(*raw)
    return dict(made)


def edges_of(found: Statistics) -> Iterator[tuple[Edge, _Raw]]:
    """Yield what was counted of each edge, more than once where several statistics are of it."""
    for protocol in ("http", "tcp"):
        times = found.times[protocol]
        for prefix, numbers in found.numbers[protocol].items():
            raw = numbers, times.get(prefix, ())
            if (to := called(prefix)) is not None:
                yield Edge(Direction.OUTBOUND, protocol, to), raw
            elif (port := received_at(prefix)) is not None:
                yield Edge(Direction.INBOUND, protocol, Called("", "", port)), raw


def backends_of(found: Statistics) -> Iterator[tuple[Called, _Raw]]:
    """Yield what was counted of each backend, likewise."""
    for cluster, numbers in found.numbers["cluster"].items():
        if (at := backend(cluster)) is not None:
            yield at, (numbers, found.times["cluster"].get(cluster, ()))


def _backend_labels(at: Called, who: Who) -> Labels:
    return (
        ("source_namespace", who.namespace),
        ("source_service", who.service),
        ("source_service_account", who.account),
        ("backend_namespace", at.namespace),
        ("backend_service", at.service),
        ("backend_port", at.port),
    )


_Told = list[tuple[Labels, Counted]]


def _edge_families(told: _Told) -> Iterator[Family]:
    yield _classes(
        "meshwright_edge_requests_total", "Requests answered, by the class of the status.", told, "down"
    )
    yield Family(
        "meshwright_edge_request_duration_seconds",
        Kind.HISTOGRAM,
        "From a request's first byte to its answer's last.",
        tuple(each for labels, of in told if of.times for each in histogram(labels, of.times)),
    )
    for name, words, what in (
        ("connections", "Connections that were opened.", "downstream_cx_total"),
        ("sent_bytes", "Bytes from the source to the destination.", "downstream_cx_rx_bytes_total"),
        ("received_bytes", "Bytes from the destination to the source.", "downstream_cx_tx_bytes_total"),
    ):
        yield _plain(f"meshwright_edge_{name}_total", words, told, what)


def _backend_families(told: _Told) -> Iterator[Family]:
    yield _classes(
        "meshwright_backend_requests_total", "Requests that a backend had, tries again left out.", told, "up"
    )
    yield Family(
        "meshwright_backend_request_duration_seconds",
        Kind.SUMMARY,
        "From a request's last byte to its answer's, by this backend.",
        tuple(each for labels, of in told if of.times for each in summary(labels, of.times)),
    )
    for name, words, what in (
        ("retries", "Requests that were tried again.", "upstream_rq_retry"),
        ("connections", "Connections to a backend that were opened.", "upstream_cx_total"),
        (
            "connections_failed",
            "Connections to a backend that could not be opened.",
            "upstream_cx_connect_fail",
        ),
    ):
        yield _plain(f"meshwright_backend_{name}_total", words, told, what)
    yield _plain(
        "meshwright_backend_connections_open",
        "Connections to a backend now.",
        told,
        "upstream_cx_active",
        Kind.GAUGE,
    )


def _classes(name: str, words: str, told: _Told, side: str) -> Family:
    at = {f"{side}stream_rq_{digit}xx": f"{digit}xx" for digit in range(1, 6)}
    samples = (
        Sample((*labels, ("status_class", word)), of.numbers[what])
        for labels, of in told
        for what, word in at.items()
        if what in of.numbers
    )
    return Family(name, Kind.COUNTER, words, tuple(samples))


def _plain(name: str, words: str, told: _Told, what: str, kind: Kind = Kind.COUNTER) -> Family:
    samples = (Sample(labels, of.numbers[what]) for labels, of in told if what in of.numbers)
    return Family(name, kind, words, tuple(samples))
