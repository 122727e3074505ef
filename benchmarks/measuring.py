"""What a change of a served mesh costs: CPU of the control plane, time to the last ACK, whom it reaches."""

import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.changes import Change
from benchmarks.clients import Report, Sidecars
from benchmarks.manifests import MeshFolder
from benchmarks.plane import ControlPlane, Series
from benchmarks.programs import BenchmarkError, Distribution

WINDOW: Final = 1.3
"""Seconds for each change: more than the server waits between two searches for problems."""
QUIET: Final = 0.3
"""A change has reached everybody when nothing came for so long, where it is not known whom it concerns."""
LIMIT: Final = 60.0


@dataclass(frozen=True, slots=True)
class Served:
    """A mesh that is served to all its sidecars, and `idle`: CPU of the server when nothing happens."""

    services: int
    folder: MeshFolder
    plane: ControlPlane
    sidecars: Sidecars
    idle: float = 0.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a kind of change costs: medians of all repetitions, without what idling costs.

    `cpu_ms` is up to the last ACK (and QUIET, where it is not known whom the change concerns), `whole_ms`
    besides what the server does afterwards, such as looking for problems; `mean_ms` is its mean.
    `foreign` counts sidecars that got a byte though the change does not concern them, `missed` the reverse.
    """

    change: str
    services: int
    repeated: int
    cpu_ms: float
    whole_ms: float
    mean_ms: float
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
    cpu: float
    whole: float
    took: float
    report: Report
    late: float


def distribution(values: Iterable[float]) -> Distribution:
    """Return percentiles of the nearest rank."""
    found = sorted(values)
    rank = [found[max(0, -(-len(found) * share // 100) - 1)] for share in (50, 99)]
    return Distribution(round(rank[0], 2), round(rank[1], 2), round(found[-1], 2))


def idling(plane: ControlPlane, windows: int) -> float:
    """Return the CPU seconds that each second without a change costs: the median of several."""
    found = []
    for _ in range(windows):
        began, before = time.monotonic(), plane.cpu()
        time.sleep(1)
        found.append((plane.cpu() - before) / (time.monotonic() - began))
    return statistics.median(found)


def cost(served: Served, change: Change, repeat: int, first: int = 0) -> Cost:
    """Make a change again and again, one after the other, and return what it costs."""
    concerned = None if change.concerned is None else proxies(change.concerned(served.services))
    before = served.plane.metrics()
    samples = [_sample(served, change, first + count, concerned) for count in range(repeat)]
    after = served.plane.metrics()
    others = [each.report.proxies - concerned for each in samples] if concerned is not None else []
    missed = [concerned - each.report.proxies for each in samples] if concerned is not None else []
    return Cost(
        change.name,
        served.services,
        repeat,
        milliseconds(statistics.median(each.cpu for each in samples)),
        milliseconds(statistics.median(each.whole for each in samples)),
        milliseconds(statistics.fmean(each.whole for each in samples)),
        distribution(each.took * 1000 for each in samples),
        statistics.median(len(each.report.proxies) for each in samples),
        sum(map(len, others)),
        sum(map(len, missed)),
        statistics.median(each.report.resources for each in samples),
        statistics.median(each.report.size for each in samples),
        moved(before, after, "meshwright_values_total", "computed") / repeat,
        moved(before, after, "meshwright_resources_encoded_total") / repeat,
        milliseconds(max(each.late for each in samples)),
        sum(each.report.lost for each in samples),
    )


def _sample(served: Served, change: Change, count: int, concerned: frozenset[int] | None) -> _Sample:
    plane, sidecars = served.plane, served.sidecars
    sidecars.wait(0, 0)
    before, began = plane.cpu(), time.time()
    change.write(served.folder, served.services, count)
    if concerned is None:
        report = sidecars.wait(2 * served.services if change.heavy else 1, QUIET, LIMIT)
    else:
        report = sidecars.wait(len(concerned), 0, LIMIT)
    acked, then = plane.cpu(), time.time()
    report = _joined(report, sidecars.wait(0, max(QUIET, began + WINDOW - then), LIMIT))
    whole, now = plane.cpu(), time.time()
    if not report.responses:
        raise BenchmarkError(f"{change.name}: nobody got anything within {LIMIT:.0f} s")
    idle = served.idle
    return _Sample(
        acked - before - idle * (then - began),
        whole - before - idle * (now - began),
        report.last_ack - began,
        report,
        plane.lateness(),
    )


def proxies(services: Sequence[int]) -> frozenset[int]:
    """Return the sidecars of services by number; each service has two."""
    return frozenset(2 * number + replica for number in services for replica in range(2))


def _joined(first: Report, second: Report) -> Report:
    return Report(
        (*first.responses, *second.responses), (), first.lost + second.lost, (*first.losses, *second.losses)
    )


def moved(before: Series, after: Series, *series: str) -> float:
    """Return by how much a metric rose."""
    return after.get(series, 0.0) - before.get(series, 0.0)


def milliseconds(seconds: float) -> float:
    """Return a time as it is printed."""
    return round(seconds * 1000, 3)
