"""What a change of a served mesh costs: CPU of the control plane, time to the last ACK, whom it reaches."""

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
"""A change has reached everybody when nothing came for so long, where it is not known whom it concerns."""
LIMIT: Final = 60.0
SERIES: Final = 60.0
"""Seconds after which a change is not repeated any more, if it has been twice."""


class Plane(Protocol):
    """A control plane that is measured; one that says nothing of itself has no metrics."""

    @property
    def pid(self) -> int:
        """Return its process's identifier."""

    def cpu(self) -> float:
        """Return the CPU seconds that it has used so far."""

    def metrics(self) -> Series:
        """Ask for its metrics."""

    def lateness(self) -> float:
        """Return how late its event loop was at most in the last seconds; 0 where there is none."""

    def sampling(self, profile: Path | None, name: str) -> AbstractContextManager[None]:
        """Have the server sample itself while the block runs, if it can and there is a folder."""


@dataclass(frozen=True, slots=True)
class MeasuredMesh:
    """A mesh that is served to sidecars.

    `everyone` says that each sidecar holds every service, and so each change of an endpoint concerns all.
    """

    services: int
    source: Source
    plane: Plane
    sidecars: Sidecars
    everyone: bool = False
    replicas: int = 2

    def concerned(self, services: Iterable[int]) -> frozenset[int]:
        """Return the connected sidecars, by number, that a change concerns which concerns these services."""
        if self.everyone:
            return frozenset(range(self.sidecars.connected))
        return self.sidecars.among(meshes.sidecar_names(services, self.replicas))


@dataclass(frozen=True, slots=True)
class Cost:
    """What a kind of change costs, of all repetitions, without what idling costs before and after each.

    `cpu_ms` is up to the last ACK (and GATHERING, where it is not known whom the change concerns), `quiet_ms`
    until the server rests again, see `benchmarks.processes.quiet`; both are medians, and there are means
    beside them.
    `restless` counts repetitions after which it did not. `foreign` counts sidecars that got a byte though the
    change does not concern them, `missed` the reverse. With nobody connected there is no ACK.
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
    """One repetition: until the last ACK, until the server rested, and what it used idle around that."""

    acked: CpuUsage
    rested: CpuUsage
    idle: tuple[CpuUsage, ...]
    restless: bool
    took: float
    report: Report
    late: float

    @property
    def cpu(self) -> float:
        """CPU seconds of the change itself until the last ACK."""
        return self.acked.beyond(*self.idle)

    @property
    def quiet(self) -> float:
        """CPU seconds of the change itself until the server rested."""
        return self.rested.beyond(*self.idle)


def distribution(values: Iterable[float]) -> Distribution:
    """Return percentiles of the nearest rank."""
    found = sorted(values)
    rank = [found[max(0, -(-len(found) * share // 100) - 1)] for share in (50, 99)]
    return Distribution(round(rank[0], 2), round(rank[1], 2), round(found[-1], 2))


def cost(served: MeasuredMesh, change: Change, repeat: int, first: int = 0) -> Cost:
    """Make a change again and again, one after the other, and return what it costs.

    A dear one is made less often than `repeat` says, see SERIES.
    """
    concerned = None if change.concerned is None else served.concerned(change.concerned(served.services))
    before = served.plane.metrics()
    samples = list(_samples(served, change, repeat, first, concerned))
    after = served.plane.metrics()
    others = [each.report.proxies - concerned for each in samples] if concerned is not None else []
    missed = [concerned - each.report.proxies for each in samples] if concerned is not None else []
    return Cost(
        change.name,
        served.services,
        served.sidecars.connected,
        len(samples),
        milliseconds(statistics.median(each.cpu for each in samples)),
        milliseconds(statistics.fmean(each.cpu for each in samples)),
        milliseconds(statistics.median(each.quiet for each in samples)),
        milliseconds(statistics.fmean(each.quiet for each in samples)),
        sum(each.restless for each in samples),
        distribution(each.took * 1000 for each in samples),
        statistics.median(len(each.report.proxies) for each in samples),
        sum(map(len, others)),
        sum(map(len, missed)),
        statistics.median(each.report.resources for each in samples),
        statistics.median(each.report.size for each in samples),
        moved(before, after, "meshwright_values_total", "computed") / len(samples),
        moved(before, after, "meshwright_resources_encoded_total") / len(samples),
        milliseconds(max(each.late for each in samples)),
        sum(each.report.lost for each in samples),
    )


def unless_dear(repeat: int) -> Iterator[int]:
    """Count repetitions, and end early after SERIES seconds, but not before two."""
    began = time.monotonic()
    for count in range(repeat):
        if count >= 2 and time.monotonic() - began > SERIES:
            return
        yield count


def _samples(
    served: MeasuredMesh, change: Change, repeat: int, first: int, concerned: frozenset[int] | None
) -> Iterator[_Sample]:
    """Yield repetitions, each between two windows without a change; after one that did not rest is none."""
    before = idled(served.plane.cpu, LEAST)
    for count in unless_dear(repeat):
        sample = _sample(served, change, first + count, concerned, before)
        if not sample.restless:
            after = idled(served.plane.cpu, sample.rested.seconds)
            sample, before = replace(sample, idle=(before, after)), after
        yield sample


def _sample(
    served: MeasuredMesh, change: Change, count: int, concerned: frozenset[int] | None, idle: CpuUsage
) -> _Sample:
    plane, sidecars = served.plane, served.sidecars
    sidecars.wait(0, 0)
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
    report = _joined(report, sidecars.wait(0, 0))
    if sidecars.connected and not report.responses:
        raise BenchmarkError(f"{change.name}: nobody got anything within {LIMIT:.0f} s")
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
    """Return by how much a metric rose."""
    return after.get(series, 0.0) - before.get(series, 0.0)


def milliseconds(seconds: float) -> float:
    """Return a time as it is printed."""
    return round(seconds * 1000, 3)
