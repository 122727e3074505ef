"""Store of the traffic reports of all proxies in the last hour."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Protocol, TypeVar

from meshwright.mesh.identity import ProxyName
from meshwright.traffic.cells import Cells, Grain, Span
from meshwright.traffic.statistics import OTHERS, Calls, Figures, Kind, Report

HOUR: Final = 3600.0
GRAINS: Final = (Grain(10, 12), Grain(60, 15), Grain(300, 12))
OF_PROXIES: Final = (Grain(10, 12), Grain(60, 15))
MOST: Final = 150_000
"""Maximum number of entries by caller; entries by proxy are at most half as many.

Together they take at most 100 MB.
"""
MOST_ROWS: Final = 256
"""Maximum number of rows of one proxy with a separate entry within SHARE_SECONDS.

Others are added to OTHERS.

Each proxy has its own bound, so one certificate cannot use up the room of the others.
"""
SHARE_SECONDS: Final = GRAINS[-1].seconds

LEAST_REPORT_SECONDS: Final = 10
MOST_REPORT_SECONDS: Final = 600
SECONDS_PER_PROXY: Final = 0.3
"""Seconds between two reports of a proxy, per proxy in the mesh.

Reports then take less than 2 % of a processor of the control plane (see docs/operate/telemetry.md).
"""


@dataclass(frozen=True, slots=True, order=True)
class Caller:
    """A service as caller: the calls were counted by the proxies of the service's workloads."""

    namespace: str
    service: str


BySource = tuple[Caller, Calls]
ByProxy = tuple[ProxyName, Calls]
_Key = TypeVar("_Key", bound=Hashable)


class TrafficStatistics(Protocol):
    """Statistics of calls, of one server or of all servers of a mesh. Times are monotonic seconds."""

    def by_source(self, seconds: float, now: float) -> Span[BySource]:
        """Return the counts of calls by calling service, for the last `seconds` and a little more."""

    def by_proxy(self, seconds: float, now: float) -> Span[ByProxy]:
        """Return the counts by proxy: all calls in each direction together, for up to 15 minutes."""

    def reporting(self, now: float) -> int:
        """Return the number of proxies with a last report at most three report intervals old."""

    @property
    def newest(self) -> float | None:
        """The time of the last report of any proxy, or `None`."""

    @property
    def every_seconds(self) -> int:
        """The seconds between two reports of a proxy, for the present number of reporting proxies."""


@dataclass(slots=True)
class _LastReport:
    """The last report of a proxy.

    `rows` are hashes of the rows with an entry of their own since `share` began.
    """

    run: str
    number: int
    at: float
    share: float
    rows: set[int]


class Traffic:
    """Store of traffic reports; use from one event loop. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._by_source = Cells[BySource](GRAINS, MOST)
        self._by_proxy = Cells[ByProxy](OF_PROXIES, MOST // 2)
        self._last: dict[ProxyName, _LastReport] = {}

    def take(self, by: ProxyName, report: Report, now: float) -> int:
        """Add a report to the statistics, once only; return the seconds until the proxy's next report."""
        last, share = self._last.pop(by, None), now // SHARE_SECONDS
        known = last.rows if last is not None and last.share == share else set[int]()
        # Inserted again at the end: the proxy with the oldest report is first.
        self._last[by] = _LastReport(report.run, report.number, now, share, known)
        self._forget(now)
        # A repeated report (its response was lost) has the same run and number, and is not counted again.
        if last is None or last.run != report.run or last.number < report.number:
            caller = Caller(by.namespace, by.service)
            rows = _bounded(report.rows, known)
            self._by_source.add((((caller, calls), figures) for calls, figures in rows), now)
            self._by_proxy.add((((by, calls), figures) for calls, figures in _in_all(rows)), now)
        return every_seconds(len(self._last))

    def by_source(self, seconds: float, now: float) -> Span[BySource]:
        """Return the counts of calls by calling service, for the last `seconds` and a little more."""
        return self._since(self._by_source, seconds, now)

    def by_proxy(self, seconds: float, now: float) -> Span[ByProxy]:
        """Return the counts by proxy: all calls in each direction together, for up to 15 minutes."""
        return self._since(self._by_proxy, seconds, now)

    def reporting(self, now: float) -> int:
        """Return the number of proxies with a last report at most three report intervals old."""
        within = 3 * every_seconds(len(self._last))
        return sum(now - last_report.at <= within for last_report in self._last.values())

    @property
    def newest(self) -> float | None:
        """The time of the last report of any proxy, or `None`."""
        return next((last_report.at for last_report in reversed(self._last.values())), None)

    @property
    def every_seconds(self) -> int:
        """The seconds between two reports of a proxy, for the present number of reporting proxies."""
        return every_seconds(len(self._last))

    @property
    def entries(self) -> int:
        """The number of entries kept, by calling service and by proxy (see `Cells`)."""
        return len(self._by_source) + len(self._by_proxy)

    @property
    def left_out(self) -> int:
        """The number of statistics not stored because a limit on the entries was reached."""
        return self._by_source.left_out + self._by_proxy.left_out

    def _since(self, cells: Cells[_Key], seconds: float, now: float) -> Span[_Key]:
        # Old cells are dropped here as well, because no report may have come for an hour.
        cells.forget(now)
        span = cells.since(seconds, now)
        # Even a first report covers at least one interval, so rates are not overstated.
        return Span(max(span.seconds, self.every_seconds), span.cells)

    def _forget(self, now: float) -> None:
        gone = takewhile(lambda name: self._last[name].at < now - HOUR, self._last)
        for name in tuple(gone):
            del self._last[name]


def _bounded(rows: Iterable[tuple[Calls, Figures]], known: set[int]) -> list[tuple[Calls, Figures]]:
    """Return rows with at most MOST_ROWS `known` keys; others are summed by kind, direction and protocol."""
    result: dict[Calls, Figures] = {}
    for calls, figures in rows:
        # Hashes instead of keys: 256 small numbers per proxy.
        if (row := hash(calls)) not in known and len(known) < MOST_ROWS:
            known.add(row)
        key = calls if row in known else Calls(calls.kind, calls.direction, calls.protocol, OTHERS)
        result[key] = result[key] + figures if key in result else figures
    return list(result.items())


def _in_all(rows: Iterable[tuple[Calls, Figures]]) -> list[tuple[Calls, Figures]]:
    result: dict[Calls, Figures] = {}
    for calls, figures in rows:
        if calls.kind is Kind.EDGE:
            every = Calls(Kind.EDGE, calls.direction, calls.protocol, OTHERS)
            result[every] = result[every] + figures if every in result else figures
    return list(result.items())


def every_seconds(proxies: int) -> int:
    """Return the seconds between two reports of each proxy in a mesh of this many proxies.

    For example, 10 for 20 proxies, 300 for 1000, and at most 600.
    """
    return round(min(MOST_REPORT_SECONDS, max(LEAST_REPORT_SECONDS, proxies * SECONDS_PER_PROXY)))
