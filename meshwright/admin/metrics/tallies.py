"""What moves several times for every push: plain numbers here, which Prometheus is told of when it asks.

Each is moved by one thread, the event loop's, and read from any: a counter of Prometheus' own takes a lock
and a microsecond, a histogram three, and every push would move six of them.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString


class Tally:
    """A number that only grows, and the counter that shows it."""

    __slots__ = ("_counter", "_shown", "total")

    def __init__(self, counter: Counter) -> None:
        self.total = 0
        self._shown = 0
        self._counter = counter

    def show(self) -> None:
        """Have the counter say what was counted; by one thread at a time."""
        total = self.total
        self._counter.inc(total - self._shown)
        self._shown = total


class Tallies:
    """Shows tallies whenever the registry is read: to be registered before the counters that it moves."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lock = threading.Lock()
        self._tallies: tuple[Tally, ...] = ()
        registry.register(self)

    def of(self, counter: Counter) -> Tally:
        """Begin to count what a counter shows."""
        tally = Tally(counter)
        self._tallies = (*self._tallies, tally)
        return tally

    def collect(self) -> Iterable[Metric]:
        """Show every tally; none is a metric of its own."""
        with self._lock:
            for tally in self._tallies:
                tally.show()
        return ()


class Durations:
    """A histogram of seconds without labels, in Prometheus' terms."""

    def __init__(self, name: str, words: str, bounds: Sequence[float], registry: CollectorRegistry) -> None:
        """`bounds` are the buckets' upper ones, rising."""
        self.name = name
        self._words = words
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def describe(self) -> Iterator[Metric]:
        """Say what it is called."""
        yield HistogramMetricFamily(self.name, self._words)

    def collect(self) -> Iterator[Metric]:
        """Return it as it is now."""
        bounds = (*map(floatToGoString, self._bounds), "+Inf")
        counts = map(float, accumulate(self._counts))
        yield HistogramMetricFamily(
            self.name, self._words, buckets=list(zip(bounds, counts, strict=True)), sum_value=self._sum
        )
