"""Parser of Envoy's counters and histograms, from the admin interface. Pure.

https://www.envoyproxy.io/docs/envoy/latest/operations/admin#get--stats. The Prometheus page is not used,
because there a cluster's name ends at the first dot, and the rest becomes part of the metric's name.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from meshwright.agent.envoy.responses import records

_COUNTS: Final = {
    "http": r"downstream_(rq_[1-5]xx|rq_time|cx_total|cx_rx_bytes_total|cx_tx_bytes_total)",
    "tcp": r"downstream_(cx_total|cx_rx_bytes_total|cx_tx_bytes_total)",
    "vhost": r"upstream_(rq_[1-5]xx|rq_time)",
    "cluster": r"(upstream_(rq_[1-5]xx|rq_time|rq_retry|cx_total|cx_active|cx_connect_fail)"
    r"|grpc\.failure|ssl\.handshake)",
}
_FILTER: Final = "|".join(rf"^{scope}\..+\.{counts}$" for scope, counts in _COUNTS.items())
STATS_PATH: Final = f"/stats?format=json&usedonly&histogram_buckets=detailed&filter={quote(_FILTER, safe='')}"
"""Path of the counters that were ever used; a proxy knows many that it never uses."""

_NAME: Final = re.compile(
    "|".join(
        rf"(?P<{scope}>{scope})\.(?P<{scope}_of>.+)\.(?P<{scope}_what>{counts})"
        for scope, counts in _COUNTS.items()
    )
)
# Counters that repeat others of a cluster: by origin, by zone, for retries, for canaries.
_AGAIN: Final = re.compile(r"\.(external|internal|retry|canary|zone\.[^.]+\.[^.]+)$")


@dataclass(frozen=True, slots=True)
class Bin:
    """The number of a histogram's values from `least` (included) to `least + width` (excluded)."""

    least: float
    width: float
    count: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counters and histograms, by scope, then by name, then by counter.

    The names in `http` and `tcp` are the prefixes of connection managers and TCP proxies, in `cluster` the
    names of clusters, and in `vhost` the names of virtual hosts and routes. Times are in milliseconds.
    """

    numbers: Mapping[str, Mapping[str, Mapping[str, int]]]
    times: Mapping[str, Mapping[str, tuple[Bin, ...]]]


def read(answer: Mapping[str, Any]) -> Statistics:
    """Parse the answer of STATS_PATH; malformed entries are left out."""
    numbers: dict[str, dict[str, dict[str, int]]] = {scope: defaultdict(dict) for scope in _COUNTS}
    times: dict[str, dict[str, tuple[Bin, ...]]] = {scope: {} for scope in _COUNTS}
    for record in records(answer, "stats"):
        if (histograms := record.get("histograms")) is not None:
            for histogram in records(histograms, "details"):
                if (result := _read_name(histogram)) is not None:
                    times[result[0]][result[1]] = tuple(_bins(histogram))
        elif (result := _read_name(record)) is not None and isinstance(value := record.get("value"), int):
            scope, of, what = result
            numbers[scope][of][what] = value
    return Statistics(numbers, times)


def _read_name(record: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return scope, name and counter; None for counters that repeat others.

    For example, `cluster.shop/cart|8080.upstream_rq_2xx` gives `cluster`, `shop/cart|8080` and
    `upstream_rq_2xx`.
    """
    match = _NAME.fullmatch(str(record.get("name")))
    if match is None:
        return None
    scope = next(scope for scope in _COUNTS if match[scope])
    of = match[f"{scope}_of"]
    return None if scope == "cluster" and _AGAIN.search(of) else (scope, of, match[f"{scope}_what"])


def _bins(histogram: Mapping[str, Any]) -> Iterator[Bin]:
    for record in records(histogram, "totals"):
        match record:
            case {
                "lower_bound": int() | float() as least,
                "width": int() | float() as width,
                "count": int() as n,
            }:
                yield Bin(least, width, n)
            case _:
                pass
