"""Traffic statistics of all servers of a mesh. A report of a proxy counts at the server that took it."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from meshwright.admin.replicas.facts import UnreadableAnswerError, first_error
from meshwright.mesh.identity import ProxyName
from meshwright.traffic.cells import Span, pack
from meshwright.traffic.statistics import Calls, Figures
from meshwright.traffic.traffic import HOUR, ByProxy, BySource, Caller, TrafficStatistics

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """Sum of the calls of one calling service; `numbers` in the order of `Figures.numbers`."""

    caller: Caller
    calls: Calls
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProxyRow:
    """Sum of the calls of one proxy; `numbers` in the order of `Figures.numbers`."""

    proxy: ProxyName
    calls: Calls
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Statistics of one server over the last `seconds`."""

    seconds: float
    sources: tuple[SourceRow, ...]


@dataclass(frozen=True, slots=True)
class TrafficFacts:
    """Statistics of one server: of the requested window, of the last hour, and by proxy.

    `reporting` is the number of reporting proxies, and `every_seconds` the time between two reports of one.
    """

    window: Window
    hour: Window
    proxy_seconds: float
    proxies: tuple[ProxyRow, ...]
    reporting: int
    every_seconds: int


def traffic_facts(traffic: TrafficStatistics, seconds: float, now: float) -> Callable[[], TrafficFacts]:
    """Return a function for the statistics of one server, for a thread, because adding up takes long."""
    # Spans are taken on the event loop, where reports arrive; only the addition runs in a thread.
    window, hour, by_proxy = (
        traffic.by_source(seconds, now),
        traffic.by_source(HOUR, now),
        traffic.by_proxy(seconds, now),
    )
    reporting, every = traffic.reporting(now), traffic.every_seconds

    def made() -> TrafficFacts:
        proxies = (
            ProxyRow(proxy, calls, figures.numbers()) for (proxy, calls), figures in by_proxy.summed().items()
        )
        return TrafficFacts(
            _window(window), _window(hour), by_proxy.seconds, tuple(proxies), reporting, every
        )

    return made


def _window(span: Span[BySource]) -> Window:
    rows = (SourceRow(caller, calls, figures.numbers()) for (caller, calls), figures in span.summed().items())
    return Window(span.seconds, tuple(rows))


@dataclass(frozen=True, slots=True)
class MergedTraffic:
    """Sum of the statistics of this server and of others; implements TrafficStatistics.

    The other servers have sent two periods only: the window and the last hour. Any `seconds` below an hour
    select the window.
    A report counts once: for example, a proxy that moves has rows at both servers, which are added up.
    """

    own: TrafficStatistics
    others: tuple[TrafficFacts, ...]

    def by_source(self, seconds: float, now: float) -> Span[BySource]:
        """Return the counts of calls by calling service, for the last `seconds` and a little more."""
        windows = [facts.hour if seconds >= HOUR else facts.window for facts in self.others]
        rows = [{(row.caller, row.calls): row.numbers for row in window.sources} for window in windows]
        return _added(self.own.by_source(seconds, now), (window.seconds for window in windows), rows)

    def by_proxy(self, seconds: float, now: float) -> Span[ByProxy]:
        """Return the counts by proxy."""
        rows = [{(row.proxy, row.calls): row.numbers for row in facts.proxies} for facts in self.others]
        return _added(self.own.by_proxy(seconds, now), (facts.proxy_seconds for facts in self.others), rows)

    def reporting(self, now: float) -> int:
        """Return the number of reporting proxies of all servers."""
        return self.own.reporting(now) + sum(facts.reporting for facts in self.others)

    @property
    def newest(self) -> float | None:
        """The time of the last report to this server, or `None`."""
        return self.own.newest

    @property
    def every_seconds(self) -> int:
        """The longest time between two reports of a proxy at any server."""
        return max((self.own.every_seconds, *(facts.every_seconds for facts in self.others)))


def _added(
    own: Span[_Key], seconds: Iterable[float], rows: Iterable[dict[_Key, tuple[int, ...]]]
) -> Span[_Key]:
    """Return a span with the rows of other servers; the longest span counts, so rates are not overstated."""
    cells = ({key: pack(Figures.from_numbers(numbers)) for key, numbers in some.items()} for some in rows)
    return Span(max((own.seconds, *seconds)), (*own.cells, *cells))


def encode_traffic(facts: TrafficFacts) -> bytes:
    """Return statistics as JSON."""
    return _adapter().dump_json(facts)


def decode_traffic(content: bytes) -> TrafficFacts:
    """Return the statistics in an answer; raise UnreadableAnswerError."""
    try:
        facts = _adapter().validate_json(content)
    except ValidationError as error:
        raise UnreadableAnswerError(first_error(error)) from None
    # The type has no length, and a server of another version may count other figures.
    length = len(Figures().numbers())
    rows: tuple[SourceRow | ProxyRow, ...] = (*facts.window.sources, *facts.hour.sources, *facts.proxies)
    if any(len(row.numbers) != length for row in rows):
        raise UnreadableAnswerError(f"numbers: a row has {length} numbers in this version")
    return facts


@cache
def _adapter() -> TypeAdapter[TrafficFacts]:
    return TypeAdapter(TrafficFacts)
