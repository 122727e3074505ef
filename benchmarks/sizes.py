"""One size of mesh: served from nothing, all sidecars connected, and every kind of change measured."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import changes, meshes
from benchmarks.clients import sidecars
from benchmarks.credentials import issue_each
from benchmarks.manifests import MeshFolder
from benchmarks.measuring import Cost, Served, cost, distribution, idling
from benchmarks.moving import Churn, Latency, churn, latency
from benchmarks.plane import Start, control_plane
from benchmarks.processes import Memory, memory
from benchmarks.programs import Distribution, build


@dataclass(frozen=True, slots=True)
class Connecting:
    """All sidecars connect at once, and get their first configuration."""

    proxies: int
    cpu: float
    configured_ms: Distribution
    responses: int
    size: int


@dataclass(frozen=True, slots=True)
class Sized:
    """Everything that was measured at one size; `memory_after` is that after all the changes."""

    services: int
    start: Start
    connecting: Connecting
    memory: Memory
    memory_after: Memory
    idle: float
    costs: tuple[Cost, ...]
    churn: Churn | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure: how often each change is repeated, and how long the mesh is churned (0: not)."""

    repeat: int
    churn: float
    profile: Path | None = None


class Bench:
    """Meshes to be served, each in a folder of its own, with certificates that are issued once."""

    def __init__(self, folder: Path, largest: int) -> None:
        self._folder = folder
        self._program = build("loadgen/meshclients")
        self._tls = folder / "tls"
        self._tls.mkdir()
        issue_each(folder / "state", self._tls, meshes.proxy_names(largest))

    @contextmanager
    def serving(self, services: int, profile: Path | None = None) -> Iterator[tuple[Served, Start]]:
        """Serve a mesh to sidecars that are not connected yet."""
        own = self._folder / f"{services}-{time.monotonic_ns()}"
        shutil.copytree(self._folder / "state", own / "state")
        folder = MeshFolder(own / "mesh")
        folder.write(meshes.files(services))
        with (
            control_plane(folder.path, own / "state", profile) as (plane, start),
            sidecars(self._program, plane.ads, self._tls, meshes.proxy_names(services)) as clients,
        ):
            yield Served(services, folder, plane, clients), start


def connect(served: Served) -> Connecting:
    """Let all sidecars connect; a sidecar is configured when it has all that it asked for."""
    before, began = served.plane.cpu(), time.time()
    report = served.sidecars.connect()
    late = served.sidecars.wait(0, 2.0)
    return Connecting(
        len(served.sidecars.names),
        round(served.plane.cpu() - before, 3),
        distribution((moment - began) * 1000 for moment in report.configured),
        len(report.responses) + len(late.responses),
        report.size + late.size,
    )


def measure(bench: Bench, services: int, plan: Plan, say: Callable[[str], None]) -> Sized:
    """Measure everything at one size."""
    with bench.serving(services, plan.profile) as (connected, start):
        say(f"{services} services: served after {start.wall:.1f} s")
        with connected.plane.sampling(plan.profile, f"connecting {services}"):
            connecting = connect(connected)
        held = memory(connected.plane.process.pid)
        served = replace(connected, idle=idling(connected.plane, 10))
        say(f"{connecting.proxies} sidecars after {connecting.configured_ms.max / 1000:.1f} s")
        costs = tuple(_costs(served, plan, say))
        with served.plane.sampling(plan.profile, f"churn {services}"):
            churned = churn(served, plan.churn) if plan.churn else None
        after = memory(served.plane.process.pid)
        return Sized(services, start, connecting, held, after, served.idle, costs, churned)


def _costs(served: Served, plan: Plan, say: Callable[[str], None]) -> Iterator[Cost]:
    """Yield what each kind of change costs; that which concerns everybody comes last."""
    repeated = {changes.ENDPOINT: plan.repeat, changes.SETTING: min(4, plan.repeat)}
    for change in (changes.ENDPOINT, *changes.OTHERS, None, changes.SETTING):
        name = f"{change.name if change else 'a service comes and goes'} {served.services}"
        with served.plane.sampling(plan.profile, name):
            if change is None:
                found = coming_and_going(served, few(plan.repeat))
            else:
                found = [cost(served, change, repeated.get(change, few(plan.repeat)))]
        for each in found:
            say(f"{each.change}: {each.cpu_ms} ms")
        yield from found


def few(repeat: int) -> int:
    """Return how often a change is repeated that no figure is asked of."""
    return max(2, repeat // 5)


def coming_and_going(served: Served, repeat: int) -> list[Cost]:
    """Let a service appear and disappear, in turns."""
    came, went = [], []
    for _ in range(repeat):
        came.append(cost(served, changes.APPEARS, 1))
        went.append(cost(served, changes.DISAPPEARS, 1))
    return [middle(came), middle(went)]


def middle(costs: Sequence[Cost]) -> Cost:
    """Return, of single repetitions, the one in the middle by its CPU."""
    chosen = sorted(costs, key=lambda each: each.cpu_ms)[len(costs) // 2]
    took = distribution(each.last_ack_ms.max for each in costs)
    return replace(chosen, repeated=len(costs), last_ack_ms=took, lost=sum(each.lost for each in costs))


def measure_latency(bench: Bench, services: int, moves: int) -> Latency:
    """Measure P12 on a mesh of its own."""
    with bench.serving(services) as (served, _):
        connect(served)
        return latency(served, moves)
