"""The report of a proxy's statistics to the control plane.

The report is a `meshwright.enrolment.v1.ReportRequest`, with field numbers from enrolment.proto.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from meshwright.agent.statistics.edge_totals import GRPC_FAILED, Edge, EdgeTotals, OwnRows, Route
from meshwright.agent.statistics.protobuf import message
from meshwright.agent.statistics.statistics import Bin, Statistics
from meshwright.sidecars.envoy.telemetry.stat_names import StatTarget
from meshwright.traffic.statistics import BOUNDS_MS, Direction

_DIRECTIONS: Final = {Direction.OUTBOUND: 1, Direction.INBOUND: 2}
_LONGEST_NAME: Final = 253
"""Greatest length of a route's name: a longer or unprintable name would make the server refuse the report."""
_PROTOCOLS: Final = {"http": 1, "tcp": 2}


class Reports:
    """The numbered statistics reports of one run of the agent."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._number = 0
        self._own = OwnRows()

    def next(self, increments: Statistics, seconds: float) -> bytes:
        """Return the next report (protobuf), with the increments of the counters in this many seconds."""
        self._number += 1
        rows = self._own.rows(increments)
        return message(
            (1, self._run),
            (2, self._number),
            (3, float(seconds)),
            (4, [_edge(*item) for item in rows.edges.items()]),
            (5, [_backend(*item) for item in rows.backends.items()]),
            (6, [_route(*item) for item in rows.routes.items()]),
        )


def _edge(edge: Edge, counted: EdgeTotals) -> bytes:
    numbers = counted.numbers
    connections = message(
        (1, numbers["downstream_cx_total"]),
        (3, numbers["downstream_cx_rx_bytes_total"]),
        (4, numbers["downstream_cx_tx_bytes_total"]),
    )
    return message(
        (1, _DIRECTIONS[edge.direction]),
        (2, _PROTOCOLS[edge.protocol]),
        (3, _called(edge.called)),
        (4, _requests(counted, "downstream")),
        (5, connections),
    )


def _backend(at: StatTarget, counted: EdgeTotals) -> bytes:
    numbers = counted.numbers
    connections = message(
        (1, numbers["upstream_cx_total"]),
        (2, numbers["upstream_cx_connect_fail"]),
        (5, numbers["ssl.handshake"]),
    )
    return message(
        (1, _called(at)),
        (2, _requests(counted, "upstream")),
        (3, connections),
        (4, numbers["upstream_rq_retry"]),
    )


def _route(at: Route, counted: EdgeTotals) -> bytes:
    name = "".join(item for item in at.name[:_LONGEST_NAME] if item.isprintable())
    direction = _DIRECTIONS[at.direction]
    return message((1, direction), (2, _called(at.called)), (3, name), (4, _requests(counted, "upstream")))


def _requests(counted: EdgeTotals, side: str) -> bytes:
    by_class = tuple(counted.numbers[f"{side}_rq_{digit}xx"] for digit in range(1, 6))
    seconds = sum((time.least + time.width / 2) * time.count for time in counted.times) / 1000
    return message(
        (1, by_class if any(by_class) else ()),
        (2, _by_time(counted.times)),
        (3, float(seconds)),
        (4, _failed_by_grpc(counted)),
    )


def _failed_by_grpc(counted: EdgeTotals) -> int:
    """Return the failed gRPC calls not counted as 5xx already; a sum counts each failure once.

    If the proxy itself ends a gRPC call, for example by a timeout, the response has a gRPC status with HTTP
    status 200, and the cluster counts a 5xx ("gRPC Statistics" in Envoy's documentation).
    """
    return max(0, counted.numbers[GRPC_FAILED] - counted.numbers["upstream_rq_5xx"])


def _by_time(bins: Iterable[Bin]) -> tuple[int, ...]:
    """Return the number of requests per latency bucket; empty without any."""
    counts = [0] * (len(BOUNDS_MS) + 1)
    for item in bins:
        counts[bisect_right(BOUNDS_MS, item.least)] += item.count
    return tuple(counts) if any(counts) else ()


def _called(at: StatTarget) -> bytes:
    number, named = (int(at.port), "") if at.port.isdecimal() else (0, at.port)
    return message((1, at.namespace), (2, at.service), (3, number), (4, named))
