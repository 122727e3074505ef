"""Measurement of one mesh: start, sidecars connecting in stages, and the cost of every kind of change."""

import shutil
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.measurements.change_cost import Cost, MeasuredMesh, Plane, cost, distribution, unless_dear
from benchmarks.measurements.moving_endpoints import Churn, Latency, churn, latency
from benchmarks.meshes import changes
from benchmarks.meshes import generator as meshes
from benchmarks.meshes.changes import InFolder
from benchmarks.meshes.manifests import MeshFolder
from benchmarks.processes.clients import sidecars
from benchmarks.processes.credentials import issue_each
from benchmarks.processes.plane import HERE, ControlPlane, Start, control_plane
from benchmarks.processes.programs import Checkout, Distribution, build
from benchmarks.processes.quiet import QuietProcess, idling, settled
from benchmarks.processes.usage import Memory, memory

IDLE_WINDOWS: Final = 5


@dataclass(frozen=True, slots=True)
class Case:
    """A mesh with `services` services, and the connected sidecars at each stage, for example `(0, 12, 2000)`.

    With `whole`, the last stage has every kind of change and the churn. With `in_turns`, one sidecar of each
    service connects before the second ones.
    """

    services: int
    stages: tuple[int, ...]
    permissive: bool = False
    whole: bool = False
    in_turns: bool = False

    @property
    def names(self) -> list[str]:
        """Return the common names of the sidecars in the order of their connection.

        The first belong to the service whose endpoint moves, because a workload is an endpoint only after its
        sidecar has connected once. The sidecars affected by the move follow.
        """
        first = (changes.MOVED, *meshes.callers(changes.MOVED, self.services))
        others = (number for number in range(self.services) if number not in first)
        names = meshes.sidecar_names((*first, *others))
        # Each service has two sidecars, so the even positions are the first ones.
        return ([*names[::2], *names[1::2]] if self.in_turns else names)[: max(self.stages)]


@dataclass(frozen=True, slots=True)
class ConnectFigures:
    """Cost of sidecars that connect at once for a first configuration; `refused` were opened again."""

    proxies: int
    cpu: float
    configured_ms: Distribution
    responses: int
    size: int
    refused: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Results with `connected` sidecars; `idle` is the CPU seconds per second without a change."""

    connected: int
    connecting: ConnectFigures | None
    memory: Memory
    idle: float
    costs: tuple[Cost, ...]


@dataclass(frozen=True, slots=True)
class MeshSizeFigures:
    """All results of one mesh.

    `settled` is the CPU time from the start until the server rests, which may be after it is ready.
    `memory_after` is the memory after all changes.
    """

    services: int
    permissive: bool
    start: Start
    settled: float
    stages: tuple[Stage, ...]
    memory_after: Memory
    churn: Churn | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Extent of the measurement: repetitions of each change, and seconds of churn (0: none)."""

    repeat: int
    churn: float
    profile: Path | None = None
    checkout: Checkout = HERE


class Bench:
    """Folder for the meshes to serve, each in its own subfolder, with certificates issued once."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self._folder = folder
        self._program = build("loadgen/meshclients")
        self._tls = folder / "tls"
        self._tls.mkdir()
        issue_each(folder / "state", self._tls, sorted(set(names)))

    @contextmanager
    def serving(self, case: Case, plan: Plan) -> Iterator[tuple[MeasuredMesh, ControlPlane, Start]]:
        """Serve the mesh of a case, with sidecars that are not connected yet."""
        own = self._folder / f"{case.services}-{time.monotonic_ns()}"
        # A copy for each mesh, because the server writes to its state directory.
        shutil.copytree(self._folder / "state", own / "state")
        folder = MeshFolder(own / "mesh")
        folder.write(meshes.files(case.services, permissive=case.permissive))
        source = InFolder(folder, case.services, case.permissive)
        with (
            control_plane(folder.path, own / "state", plan.profile, plan.checkout) as (plane, start),
            sidecars(self._program, plane.ads, self._tls, case.names) as clients,
        ):
            yield MeasuredMesh(case.services, source, plane, clients, case.permissive), plane, start


def connect(served: MeasuredMesh, count: int) -> ConnectFigures:
    """Connect sidecars up to number `count`, and return the cost.

    Each is configured when it has all requested resources.
    """
    already = served.sidecars.connected
    before, began = served.plane.cpu(), time.time()
    report = served.sidecars.connect(count)
    # Responses that follow the first configuration belong to connecting.
    late = served.sidecars.wait(0, 1.0)
    return ConnectFigures(
        count - already,
        round(served.plane.cpu() - before, 3),
        distribution((moment - began) * 1000 for moment in report.configured),
        len(report.responses) + len(late.responses),
        report.size + late.size,
        report.refused + late.refused,
        (*report.losses, *late.losses),
    )


def measure(bench: Bench, case: Case, plan: Plan, print_line: Callable[[str], None]) -> MeshSizeFigures:
    """Serve one mesh, and measure all its stages."""
    mode = "permissive, " if case.permissive else ""
    with bench.serving(case, plan) as (served, plane, start):
        print_line(
            f"{mode}{case.services} services: served after {start.cpu:.2f} s of CPU, {start.wall:.1f} s"
        )
        rested = at_rest(plane, print_line).cpu
        stages = [
            stage(served, count, _changes(case, count, plan.repeat), plan, print_line)
            for count in case.stages
        ]
        churned: Churn | None = None
        if plan.churn and case.whole:
            with plane.sampling(plan.profile, f"churn {case.services}"):
                churned = churn(served, plan.churn)
        after = memory(plane.pid)
    return MeshSizeFigures(case.services, case.permissive, start, rested, tuple(stages), after, churned)


Repeated = tuple[changes.Change | None, int]
"""A change and its number of repetitions; None is a service that appears and disappears."""


def stage(
    served: MeasuredMesh,
    count: int,
    wanted: Iterable[Repeated],
    plan: Plan,
    print_line: Callable[[str], None],
) -> Stage:
    """Connect sidecars up to number `count`, and measure the cost of idling and of changes."""
    connecting: ConnectFigures | None = None
    if count:
        with served.plane.sampling(plan.profile, f"connecting {count} of {served.services}"):
            connecting = connect(served, count)
        took = connecting.configured_ms.max / 1000
        print_line(f"{connecting.proxies} sidecars: {connecting.cpu:.2f} s of CPU, the last in {took:.1f} s")
        if connecting.refused:
            print_line(f"{connecting.refused} streams were opened again: {connecting.reasons[0]}")
    # Memory and idling are measured at rest, because work after connecting would distort both.
    at_rest(served.plane, print_line)
    held = memory(served.plane.pid)
    # With a profile, the profiler's own CPU time is part of the result.
    with served.plane.sampling(plan.profile, f"idle {count} of {served.services}"):
        idle = idling(served.plane.cpu, IDLE_WINDOWS)
    result: list[Cost] = []
    for change, repeat in wanted:
        name = f"{change.name if change else 'a service comes and goes'} {served.services}"
        with served.plane.sampling(plan.profile, name):
            costs = _costs(served, change, repeat)
        for item in costs:
            what = f"{item.change}, {item.connected} connected"
            print_line(f"{what}: {item.cpu_ms:.1f} ms to the last ACK, {item.quiet_ms:.1f} ms to quiet")
        result += costs
    return Stage(served.sidecars.connected, connecting, held, idle, tuple(result))


def _changes(case: Case, connected: int, repeat: int) -> list[Repeated]:
    """Return the changes to measure in a stage; a change that affects all sidecars is the last."""
    if not connected:
        return [(None, few(repeat))]
    if case.permissive:
        return [(changes.ENDPOINT, few(repeat))]
    if not case.whole or connected != case.stages[-1]:
        return [(changes.ENDPOINT, repeat)]
    # The setting comes last, because its work for all sidecars could disturb the other changes.
    several = [(change, few(repeat)) for change in (changes.TARGET, changes.WEIGHT, None)]
    return [(changes.ENDPOINT, repeat), *several, (changes.SETTING, min(3, repeat))]


def _costs(served: MeasuredMesh, change: changes.Change | None, repeat: int) -> list[Cost]:
    return coming_and_going(served, repeat) if change is None else [cost(served, change, repeat)]


def at_rest(plane: Plane, print_line: Callable[[str], None]) -> QuietProcess:
    """Wait until the server rests; report a server that does not, because later values include its work."""
    rest = settled(plane.cpu)
    if rest.restless:
        print_line("the server does not rest: later values include its work")
    return rest


def few(repeat: int) -> int:
    """Return the number of repetitions of an expensive change, or of one without a goal."""
    return max(2, repeat // 3)


def coming_and_going(served: MeasuredMesh, repeat: int) -> list[Cost]:
    """Measure a service that appears and disappears in turns; return both costs."""
    came, went = [], []
    for _ in unless_dear(repeat):
        came.append(cost(served, changes.APPEARS, 1))
        went.append(cost(served, changes.DISAPPEARS, 1))
    return [middle(came), middle(went)]


def middle(costs: Sequence[Cost]) -> Cost:
    """Combine single repetitions.

    Values without a mean come from the one with the median cost until quiet.
    """
    chosen = sorted(costs, key=lambda item: item.quiet_ms)[len(costs) // 2]
    cpu, quiet = [item.cpu_ms for item in costs], [item.quiet_ms for item in costs]
    return replace(
        chosen,
        repeated=len(costs),
        cpu_ms=round(statistics.median(cpu), 3),
        cpu_mean_ms=round(statistics.fmean(cpu), 3),
        quiet_ms=round(statistics.median(quiet), 3),
        quiet_mean_ms=round(statistics.fmean(quiet), 3),
        last_ack_ms=distribution(item.last_ack_ms.max for item in costs),
        late_ms=max(item.late_ms for item in costs),
        **{
            name: sum(getattr(item, name) for item in costs)
            for name in ("restless", "foreign", "missed", "lost")
        },
    )


def measure_latency(bench: Bench, case: Case, plan: Plan, moves: int) -> Latency:
    """Measure the latency of moved endpoints (goal P12) on a mesh of its own."""
    with bench.serving(case, plan) as (served, _, _):
        connect(served, max(case.stages))
        return latency(served, moves)
