"""Cheap counters for values that change several times per push.

Each push updates six of them. An increment of a Prometheus counter takes a lock and a microsecond, and a
histogram takes three microseconds. A tally is a plain number instead: only the event loop changes a tally,
any thread may read it, and the Prometheus counters are updated when the registry is read.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString


class Tally:
    """A number that only grows, with the Prometheus counter that shows it."""

    __slots__ = ("_counter", "_shown", "total")

    def __init__(self, counter: Counter) -> None:
        self.total = 0
        self._shown = 0
        self._counter = counter

    def show(self) -> None:
        """Add the growth since the last call to the Prometheus counter; call from one thread at a time."""
        total = self.total
        self._counter.inc(total - self._shown)
        self._shown = total


class Tallies:
    """Collector that updates the counters of all tallies.

    It must be registered before these counters, because a registry reads its collectors in order.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lock = threading.Lock()
        self._tallies: tuple[Tally, ...] = ()
        registry.register(self)

    def tally(self, counter: Counter) -> Tally:
        """Return a new tally for a counter."""
        tally = Tally(counter)
        self._tallies = (*self._tallies, tally)
        return tally

    def collect(self) -> Iterable[Metric]:
        """Update the Prometheus counters of all tallies; yields no metric of its own."""
        # Two scrapes at the same time would else add the same difference twice.
        with self._lock:
            for tally in self._tallies:
                tally.show()
        return ()


class Durations:
    """A Prometheus histogram of seconds, without labels."""

    def __init__(self, name: str, words: str, bounds: Sequence[float], registry: CollectorRegistry) -> None:
        """`bounds` are the upper bounds of the buckets in seconds, in rising order."""
        self.name = name
        self._words = words
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, seconds: float) -> None:
        """Count a duration in seconds."""
        # Without a lock: a scrape in between sees a count without its seconds, and the next scrape has both.
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def describe(self) -> Iterator[Metric]:
        """Yield the name of the histogram."""
        yield HistogramMetricFamily(self.name, self._words)

    def collect(self) -> Iterator[Metric]:
        """Yield the current values."""
        bounds = (*map(floatToGoString, self._bounds), "+Inf")
        counts = map(float, accumulate(self._counts))
        yield HistogramMetricFamily(
            self.name, self._words, buckets=list(zip(bounds, counts, strict=True)), sum_value=self._sum
        )
