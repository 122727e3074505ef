"""Statistics of a proxy as Prometheus metrics."""

from collections.abc import Iterable, Iterator

from meshwright.agent.statistics.edge_totals import (
    GRPC_FAILED,
    EdgeTotals,
    OwnRows,
    Route,
    WorkloadLabels,
    ends,
)
from meshwright.agent.statistics.exposition import Family, Kind, Labels, Sample
from meshwright.agent.statistics.statistics import Bin, Statistics
from meshwright.sidecars.envoy.telemetry.stat_names import StatTarget
from meshwright.traffic.statistics import BOUNDS_MS


class Edges:
    """The conversion of a proxy's statistics to metrics; edges, backends and routes keep their series."""

    def __init__(self) -> None:
        self._own = OwnRows()

    def families(self, statistics: Statistics, workload: WorkloadLabels) -> tuple[Family, ...]:
        """Return all metrics of the proxy's statistics, sorted; always the same metric families."""
        rows = self._own.rows(statistics)
        return (
            *_edge_families([(edge.labels(workload), counted) for edge, counted in rows.edges.items()]),
            *_backend_families(
                [(_backend_labels(at, workload), backend) for at, backend in rows.backends.items()]
            ),
            *_route_families([(_route_labels(at, workload), route) for at, route in rows.routes.items()]),
        )


def _backend_labels(at: StatTarget, workload: WorkloadLabels) -> Labels:
    return (
        ("source_namespace", workload.namespace),
        ("source_service", workload.service),
        ("source_service_account", workload.account),
        ("backend_namespace", at.namespace),
        ("backend_service", at.service),
        ("backend_port", at.port),
    )


def _route_labels(at: Route, workload: WorkloadLabels) -> Labels:
    return (*ends(at.direction, at.called, workload), ("route", at.name))


_Told = list[tuple[Labels, EdgeTotals]]


def _edge_families(edges: _Told) -> Iterator[Family]:
    yield _classes(
        "meshwright_edge_requests_total", "Requests answered, by the class of the status.", edges, "down"
    )
    yield _plain(
        "meshwright_edge_grpc_failed_total",
        "gRPC requests among these with another status than OK.",
        edges,
        GRPC_FAILED,
    )
    yield Family(
        "meshwright_edge_request_duration_seconds",
        Kind.HISTOGRAM,
        "From a request's first byte to its answer's last.",
        tuple(sample for labels, of in edges if of.times for sample in histogram(labels, of.times)),
    )
    for name, words, what in (
        ("connections", "Connections that were opened.", "downstream_cx_total"),
        ("sent_bytes", "Bytes from the source to the destination.", "downstream_cx_rx_bytes_total"),
        ("received_bytes", "Bytes from the destination to the source.", "downstream_cx_tx_bytes_total"),
    ):
        yield _plain(f"meshwright_edge_{name}_total", words, edges, what)


def _backend_families(edges: _Told) -> Iterator[Family]:
    yield _classes(
        "meshwright_backend_requests_total", "Requests to a backend, without retries.", edges, "up"
    )
    yield _plain(
        "meshwright_backend_grpc_failed_total",
        "gRPC requests among these with another status than OK.",
        edges,
        GRPC_FAILED,
    )
    yield Family(
        "meshwright_backend_request_duration_seconds",
        Kind.SUMMARY,
        "From a request's last byte to its answer's, by this backend.",
        tuple(sample for labels, of in edges if of.times for sample in summary(labels, of.times)),
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
        yield _plain(f"meshwright_backend_{name}_total", words, edges, what)
    yield _plain(
        "meshwright_backend_connections_open",
        "Connections to a backend now.",
        edges,
        "upstream_cx_active",
        Kind.GAUGE,
    )


def _route_families(edges: _Told) -> Iterator[Family]:
    yield _classes(
        "meshwright_route_requests_total", "Requests of a route that its backend answered.", edges, "up"
    )
    yield Family(
        "meshwright_route_request_duration_seconds",
        Kind.SUMMARY,
        "From a request's last byte to its answer's, by this route.",
        tuple(sample for labels, of in edges if of.times for sample in summary(labels, of.times)),
    )


def _classes(name: str, words: str, edges: _Told, side: str) -> Family:
    at = {f"{side}stream_rq_{digit}xx": f"{digit}xx" for digit in range(1, 6)}
    samples = (
        Sample((*labels, ("status_class", word)), of.numbers[what])
        for labels, of in edges
        for what, word in at.items()
        if what in of.numbers
    )
    return Family(name, Kind.COUNTER, words, tuple(samples))


def _plain(name: str, words: str, edges: _Told, counter: str, kind: Kind = Kind.COUNTER) -> Family:
    samples = (Sample(labels, of.numbers[counter]) for labels, of in edges if counter in of.numbers)
    return Family(name, kind, words, tuple(samples))


def histogram(labels: Labels, bins: Iterable[Bin]) -> tuple[Sample, ...]:
    """Return the samples of a histogram; a time equal to a bound counts in the bucket above, as in Envoy."""
    result = tuple(bins)
    below = ((bound, sum(item.count for item in result if item.least < bound)) for bound in BOUNDS_MS)
    buckets = (((*labels, ("le", f"{bound / 1000:g}")), count) for bound, count in below)
    every = (*labels, ("le", "+Inf")), sum(item.count for item in result)
    return (*(Sample(at, count, "_bucket") for at, count in (*buckets, every)), *summary(labels, result))


def summary(labels: Labels, bins: Iterable[Bin]) -> tuple[Sample, ...]:
    """Return sum and count; the values in a bin count as the middle of the bin."""
    result = tuple(bins)
    total = sum((item.least + item.width / 2) * item.count for item in result) / 1000
    return Sample(labels, total, "_sum"), Sample(labels, sum(item.count for item in result), "_count")
