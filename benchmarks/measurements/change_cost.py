"""Cost of a change in a served mesh: CPU time of the server, time to the last ACK, reached sidecars."""

import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from benchmarks.meshes import generator as meshes
from benchmarks.meshes.changes import Change, Source
from benchmarks.processes.clients import Report, Sidecars
from benchmarks.processes.plane import Series
from benchmarks.processes.programs import BenchmarkError, Distribution
from benchmarks.processes.quiet import LEAST, CpuUsage, idled, until_quiet

GATHERING: Final = 0.3
"""Seconds without a response after which a change counts as complete, if its sidecars are unknown."""
LIMIT: Final = 60.0
SERIES: Final = 60.0
"""Seconds after which a change is not repeated any more, after two repetitions at least."""


class Plane(Protocol):
    """A measured control plane; a server without metrics returns empty ones."""

    @property
    def pid(self) -> int:
        """Return the process id."""

    def cpu(self) -> float:
        """Return the CPU seconds used so far by the server's process."""

    def metrics(self) -> Series:
        """Query the server's metrics; empty for a server without metrics."""

    def lateness(self) -> float:
        """Return the maximum delay of the event loop in the last seconds; 0 without an event loop."""

    def sampling(self, profile: Path | None, name: str) -> AbstractContextManager[None]:
        """Profile the server while the block runs, if the server supports this and `profile` is a folder."""


@dataclass(frozen=True, slots=True)
class MeasuredMesh:
    """A mesh served to sidecars.

    With `everyone` each sidecar has every service, so each change of an endpoint affects all of them.
    """

    services: int
    source: Source
    plane: Plane
    sidecars: Sidecars
    everyone: bool = False
    replicas: int = 2

    def concerned(self, services: Iterable[int]) -> frozenset[int]:
        """Return the numbers of connected sidecars affected by a change of these services."""
        if self.everyone:
            return frozenset(range(self.sidecars.connected))
        return self.sidecars.among(meshes.sidecar_names(services, self.replicas))


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one kind of change over all repetitions, without the cost of idling before and after each.

    `cpu_ms` ends at the last ACK (or GATHERING seconds later, if the affected sidecars are unknown), and
    `quiet_ms` when the server rests again (see `benchmarks.processes.quiet`). Both are medians; the means are
    separate. `restless` counts repetitions after which the server did not rest. `foreign` counts unaffected
    sidecars with a response, and `missed` counts affected sidecars without one. Without connected sidecars
    there are no ACKs.
    """

    change: str
    services: int
    connected: int
    repeated: int
    cpu_ms: float
    cpu_mean_ms: float
    quiet_ms: float
    quiet_mean_ms: float
    restless: int
    last_ack_ms: Distribution
    proxies: float
    foreign: int
    missed: int
    sent: float
    size: float
    computed: float
    made: float
    late_ms: float
    lost: int


@dataclass(frozen=True, slots=True)
class _Sample:
    """One repetition: CPU time until the last ACK, until the server rested, and of idling around it."""

    acked: CpuUsage
    rested: CpuUsage
    idle: tuple[CpuUsage, ...]
    restless: bool
    took: float
    report: Report
    late: float

    @property
    def cpu(self) -> float:
        """CPU seconds of the change until the last ACK."""
        return self.acked.beyond(*self.idle)

    @property
    def quiet(self) -> float:
        """CPU seconds of the change until the server rested."""
        return self.rested.beyond(*self.idle)


def distribution(values: Iterable[float]) -> Distribution:
    """Return median, 99th percentile and maximum of the values, by the nearest-rank method."""
    result = sorted(values)
    # Double negation rounds up: the nearest rank is the first value with enough values up to it.
    rank = [result[max(0, -(-len(result) * share // 100) - 1)] for share in (50, 99)]
    return Distribution(round(rank[0], 2), round(rank[1], 2), round(result[-1], 2))


def cost(served: MeasuredMesh, change: Change, repeat: int, first: int = 0) -> Cost:
    """Make a change repeatedly, and return its cost.

    An expensive change has fewer repetitions than `repeat`, see SERIES.
    """
    concerned = None if change.concerned is None else served.concerned(change.concerned(served.services))
    # These counters grow over all repetitions, and are divided by their number below.
    before = served.plane.metrics()
    samples = list(_samples(served, change, repeat, first, concerned))
    after = served.plane.metrics()
    others = [sample.report.proxies - concerned for sample in samples] if concerned is not None else []
    missed = [concerned - sample.report.proxies for sample in samples] if concerned is not None else []
    return Cost(
        change.name,
        served.services,
        served.sidecars.connected,
        len(samples),
        milliseconds(statistics.median(sample.cpu for sample in samples)),
        milliseconds(statistics.fmean(sample.cpu for sample in samples)),
        milliseconds(statistics.median(sample.quiet for sample in samples)),
        milliseconds(statistics.fmean(sample.quiet for sample in samples)),
        sum(sample.restless for sample in samples),
        distribution(sample.took * 1000 for sample in samples),
        statistics.median(len(sample.report.proxies) for sample in samples),
        sum(map(len, others)),
        sum(map(len, missed)),
        statistics.median(sample.report.resources for sample in samples),
        statistics.median(sample.report.size for sample in samples),
        moved(before, after, "meshwright_values_total", "computed") / len(samples),
        moved(before, after, "meshwright_resources_encoded_total") / len(samples),
        milliseconds(max(sample.late for sample in samples)),
        sum(sample.report.lost for sample in samples),
    )


def unless_dear(repeat: int) -> Iterator[int]:
    """Yield the numbers of the repetitions of a change; after two, stop when SERIES seconds have passed."""
    began = time.monotonic()
    for count in range(repeat):
        if count >= 2 and time.monotonic() - began > SERIES:
            return
        yield count


def _samples(
    served: MeasuredMesh, change: Change, repeat: int, first: int, concerned: frozenset[int] | None
) -> Iterator[_Sample]:
    """Yield the samples of a repeated change, each between two idle windows.

    A repetition after which the server did not rest has only the first window.
    """
    before = idled(served.plane.cpu, LEAST)
    for count in unless_dear(repeat):
        sample = _sample(served, change, first + count, concerned, before)
        # After a repetition without rest, an idle window would include the rest of its work.
        if not sample.restless:
            after = idled(served.plane.cpu, sample.rested.seconds)
            sample, before = replace(sample, idle=(before, after)), after
        yield sample


def _sample(
    served: MeasuredMesh, change: Change, count: int, concerned: frozenset[int] | None, idle: CpuUsage
) -> _Sample:
    plane, sidecars = served.plane, served.sidecars
    sidecars.wait(0, 0)
    # Wall-clock time, because the Go program with the sidecars reports its times by this clock.
    before, began = plane.cpu(), time.time()
    change.write(served.source, count)
    if not sidecars.connected:
        report = sidecars.wait(0, 0)
    elif concerned is None:
        report = sidecars.wait(sidecars.connected if change.heavy else 1, GATHERING, LIMIT)
    else:
        report = sidecars.wait(len(concerned), 0, LIMIT)
    acked = CpuUsage(plane.cpu() - before, time.time() - began)
    rest = until_quiet(plane.cpu, idle.share, began)
    # Later responses count too, because they may go to unaffected sidecars.
    report = _joined(report, sidecars.wait(0, 0))
    if sidecars.connected and not report.responses:
        raise BenchmarkError(f"{change.name}: no sidecar got a response within {LIMIT:.0f} s")
    return _Sample(
        acked,
        CpuUsage(rest.cpu - before, rest.moment - began),
        (idle,),
        rest.restless,
        report.last_ack - began if report.responses else 0.0,
        report,
        plane.lateness(),
    )


def _joined(first: Report, second: Report) -> Report:
    return Report(
        (*first.responses, *second.responses),
        (),
        first.lost + second.lost,
        (*first.losses, *second.losses),
        first.refused + second.refused,
    )


def moved(before: Series, after: Series, *series: str) -> float:
    """Return the increase of a metric between two queries."""
    return after.get(series, 0.0) - before.get(series, 0.0)


def milliseconds(seconds: float) -> float:
    """Return a time in milliseconds, rounded to three digits."""
    return round(seconds * 1000, 3)
