"""Results of several control planes on the same cluster, and their comparison."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table

from benchmarks.in_kubernetes.restarts import Relist
from benchmarks.measurements.change_cost import Cost
from benchmarks.processes.plane import Start
from benchmarks.processes.programs import Distribution

EVENT_GOAL: Final = 0.1
MEMORY_GOAL: Final = 1.0


@dataclass(frozen=True, slots=True)
class ControlPlaneFigures:
    """Results of one control plane: start, connecting, endpoint events, API server restarts."""

    who: str
    start: Start
    settled_cpu: float
    ready_mib: float
    connecting_cpu: float
    configured_ms: Distribution
    connected_mib: float
    event: Cost
    relists: tuple[Relist, ...]
    after_mib: float
    peak_mib: float


def rows() -> Iterator[tuple[str, str, Callable[[ControlPlaneFigures], float], float | None]]:
    """Yield the rows of the comparison: name in the results, heading, value, and the ratio to reach."""
    yield "first_wall_s", "first snapshot, s", lambda plane: plane.start.wall, None
    yield "first_cpu_s", "first snapshot, CPU s", lambda plane: plane.start.cpu, None
    yield "settled_cpu_s", "at rest, CPU s", lambda plane: plane.settled_cpu, None
    yield "ready_mib", "nobody connected, RSS MiB", lambda plane: plane.ready_mib, MEMORY_GOAL
    yield "connect_cpu_s", "sidecars connect, CPU s", lambda plane: plane.connecting_cpu, None
    yield "connected_mib", "all connected, RSS MiB", lambda plane: plane.connected_mib, MEMORY_GOAL
    yield "event_cpu_ms", "endpoint event to last ACK, CPU ms", lambda plane: plane.event.cpu_ms, EVENT_GOAL
    yield (
        "event_quiet_ms",
        "endpoint event until rest, CPU ms",
        lambda plane: plane.event.quiet_ms,
        EVENT_GOAL,
    )
    yield "event_ack_ms", "endpoint event to last ACK, ms", lambda plane: plane.event.last_ack_ms.p50, None
    yield "event_bytes", "endpoint event, bytes sent", lambda plane: plane.event.size, None
    yield "relist_cpu_ms", "API server restarted, CPU ms", lambda plane: _middle(plane, "cpu_ms"), None
    yield (
        "relist_responses",
        "responses after it",
        lambda plane: max(one.responses for one in plane.relists),
        None,
    )
    yield "relist_followed_s", "followed again after, s", lambda plane: _middle(plane, "followed_s"), None
    yield "peak_mib", "most of all, RSS MiB", lambda plane: plane.peak_mib, MEMORY_GOAL


def table(title: str, result: Sequence[ControlPlaneFigures]) -> Table:
    """Return a table with the results of the control planes side by side, their ratio and the goals."""
    out = Table(title=title)
    out.add_column("figure", no_wrap=True)
    for heading in (*(plane.who for plane in result), "ratio", "wanted", ""):
        out.add_column(heading, justify="right")
    for _, heading, of, goal in rows():
        several = [of(plane) for plane in result]
        ratio = several[0] / several[1] if len(several) > 1 and several[1] else None
        reached = "" if goal is None or ratio is None else "reached" if ratio <= goal else "missed"
        out.add_row(
            heading,
            *(f"{number:.2f}" for number in several),
            "" if ratio is None else f"{ratio:.3f}",
            "" if goal is None else f"{goal:.2f}",
            reached,
        )
    return out


def _middle(plane: ControlPlaneFigures, figure: str) -> float:
    return float(statistics.median(getattr(relist, figure) for relist in plane.relists))
