"""Command `python -m benchmarks.kubernetes`: our server and istiod on the same real Kubernetes API.

A cluster on loopback has the mesh of `benchmarks.meshes.generator`: the objects read by every control plane
once, and an equal number of policies for each: SMI for our server, and Istio's in the narrow scope (istiod at
its best) for the peer. The servers are measured one after the other: start, connection of the same sidecars,
endpoints that turn ready and unready, and at last restarts of the API server, after which all is listed
again.
"""

import argparse
import contextlib
import itertools
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.figures.results import Values, machine, name, place, write
from benchmarks.in_kubernetes import objects as core
from benchmarks.in_kubernetes import smi
from benchmarks.in_kubernetes.api import connection, create_all
from benchmarks.in_kubernetes.figures import ControlPlaneFigures, rows, table
from benchmarks.in_kubernetes.objects import Kind, namespaces
from benchmarks.in_kubernetes.restarts import relist
from benchmarks.in_kubernetes.source import InKubernetes, Words, turning
from benchmarks.measurements.change_cost import MeasuredMesh, Plane, cost
from benchmarks.measurements.sizes import connect
from benchmarks.meshes import changes
from benchmarks.meshes import generator as meshes
from benchmarks.peers.istiod import objects
from benchmarks.peers.istiod.plane import definitions, istiod
from benchmarks.peers.istiod.source import Istio
from benchmarks.processes.clients import Sidecars, sidecars
from benchmarks.processes.credentials import issue_each
from benchmarks.processes.plane import HERE, Start, serving
from benchmarks.processes.programs import BenchmarkError, build, end_with_sigterm
from benchmarks.processes.quiet import settled
from benchmarks.processes.real_parts import are_had
from benchmarks.processes.usage import memory
from meshwright.mesh.workload import Workload
from tools.real_parts.cluster import RunningCluster, cluster
from tools.real_parts.parts import API_SERVER, ETCD, ISTIOD

Say = Callable[[str], None]

OURS: Final = "ours"
PEER: Final = "istiod"
RELISTS: Final = 4
"""Number of restarts of the API server; even, so that the endpoint ends as ready as it began."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kubernetes", description=__doc__)
    parser.add_argument("--services", type=int, default=1000, help="services of the mesh [1000]")
    parser.add_argument("--replicas", type=int, default=meshes.MOST, help=f"Pods of each [{meshes.MOST}]")
    parser.add_argument("--clients", type=int, default=1000, help="sidecars that connect [1000]")
    parser.add_argument("--repeat", type=int, default=20, help="moves of an endpoint [20]")
    parser.add_argument("--only", choices=(OURS, PEER), help="measure only one of the two [both]")
    parser.add_argument("--quick", action="store_true", help="use 50 services, 100 sidecars and few moves")
    parser.add_argument("--profile", type=Path, help="folder for CPU profiles of our server")
    parser.add_argument("--output", type=Path, help="[results/kubernetes.json, quick results/quick/...]")
    options = parser.parse_args(argv)
    if options.quick:
        options.services, options.clients, options.repeat = 50, 100, 4
    return options


@dataclass(frozen=True, slots=True)
class Size:
    """Size of the mesh, and the number of sidecars that connect."""

    services: int
    replicas: int
    clients: int

    def workloads(self) -> Iterator[Workload]:
        """Yield the workloads whose sidecars connect: of the moved service, its callers, then others."""
        first = (changes.MOVED, *meshes.callers(changes.MOVED, self.services))
        others = (number for number in range(self.services) if number not in first)
        result = (
            meshes.workload(number, item) for number in (*first, *others) for item in range(self.replicas)
        )
        for _, workload in zip(range(self.clients), result, strict=False):
            yield workload

    def names(self) -> list[str]:
        """Return the common names of the sidecars that connect."""
        return [str(workload.proxy_name) for workload in self.workloads()]


Running = Callable[[], contextlib.AbstractContextManager[tuple[Plane, Start, Sidecars]]]
"""Function that starts a control plane and sidecars, which are not connected yet."""


Runs = Callable[[RunningCluster, Size, Path, Path | None], Running]


@dataclass(frozen=True, slots=True)
class Plan:
    """A control plane to measure: its policies, their definitions and kinds, and how to start it."""

    who: str
    words: Words
    definitions: Callable[[], str]
    kinds: tuple[Kind, ...]
    runs: Runs


def measure(
    cluster: RunningCluster,
    size: Size,
    plan: Plan,
    run: Running,
    repeat: int,
    profile: Path | None,
    print_line: Say,
) -> ControlPlaneFigures:
    """Measure one control plane on the objects of the cluster."""
    who = plan.who
    with connection(cluster) as api, run() as (plane, start, clients):
        print_line(f"{who}: ready after {start.wall:.1f} s and {start.cpu:.2f} s of CPU")
        # A control plane may still work on its first snapshot when it reports that it is ready.
        rested, ready = settled(plane.cpu).cpu, memory(plane.pid).resident
        source = InKubernetes(api, size.services, plan.words, size.replicas)
        served = MeasuredMesh(size.services, source, plane, clients, replicas=size.replicas)
        connecting = connect(served, size.clients)
        print_line(f"{who}: {size.clients} sidecars after {connecting.cpu:.2f} s of CPU")
        settled(plane.cpu)
        connected = memory(plane.pid).resident
        change = turning(source)
        with plane.sampling(profile, "endpoint events"):
            event = cost(served, change, repeat + repeat % 2)  # an even number restores the endpoint
        print_line(
            f"{who}: an endpoint event costs {event.cpu_ms:.2f} ms, and {event.quiet_ms:.2f} ms to quiet"
        )
        relists = tuple(relist(cluster, api, served, change, number) for number in range(RELISTS))
        print_line(f"{who}: a restart of the API server costs {relists[-1].cpu_ms:.0f} ms")
        after = memory(plane.pid)
    return ControlPlaneFigures(
        who, start, rested, ready, connecting.cpu, connecting.configured_ms, connected, event, relists,
        after.resident, after.peak,
    )  # fmt: skip


def fill(cluster: RunningCluster, size: Size, planes: Iterable["Plan"], print_line: Say) -> None:
    """Write the resource definitions of all control planes, and the mesh with the policies of each."""
    with connection(cluster) as api:
        for plane in planes:
            api.define(plane.definitions())
            api.until_served(*plane.kinds)
    create_all(cluster, namespaces(objects.SYSTEM))
    create_all(cluster, [objects.settings()])
    numbers = range(size.services)
    count = create_all(cluster, (one for item in numbers for one in core.service(item, size.replicas)))
    for plane in planes:
        result = (plane.words.policies(number, meshes.callers(number, size.services)) for number in numbers)
        count += create_all(cluster, itertools.chain.from_iterable(result))
    print_line(f"{count} objects written")


def our_definitions() -> str:
    """Return Meshwright's CustomResourceDefinitions as YAML."""
    made = subprocess.run([*HERE.program, "crds"], cwd=HERE.root, capture_output=True, text=True, check=False)
    if made.returncode:
        raise BenchmarkError(f"`meshwright crds` ended with {made.returncode}: {made.stderr}")
    return made.stdout


def ours(cluster: RunningCluster, size: Size, folder: Path, profile: Path | None) -> Running:
    """Return a function that starts our server as the cluster's administrator; its sidecars use mTLS."""

    @contextlib.contextmanager
    def run() -> Iterator[tuple[Plane, Start, Sidecars]]:
        names, tls = size.names(), folder / "tls"
        tls.mkdir()
        issue_each(folder / "state", tls, names)
        sources = ("--kubernetes", "--kubeconfig", str(cluster.kubeconfig))
        with (
            serving(sources, folder / "state", profile) as (plane, start),
            sidecars(build("loadgen/meshclients"), plane.ads, tls, names) as clients,
        ):
            yield plane, start, clients

    return run


def peer(cluster: RunningCluster, size: Size, folder: Path, profile: Path | None) -> Running:
    """Return a function that starts istiod; its sidecars use plaintext, and present themselves as Istio's."""
    del profile  # other tools profile istiod

    @contextlib.contextmanager
    def run() -> Iterator[tuple[Plane, Start, Sidecars]]:
        nodes = {str(workload.proxy_name): objects.node(workload) for workload in size.workloads()}
        (folder / "plain").mkdir()
        with (
            istiod(cluster, folder / "log") as (plane, start),
            sidecars(
                build("loadgen/meshclients"), plane.ads, folder / "plain", list(nodes), nodes
            ) as clients,
        ):
            yield plane, start, clients

    return run


def plans(size: Size) -> Iterator[Plan]:
    """Yield the plans for measuring our server and istiod, ours first."""
    kinds = (smi.ROUTES, smi.TARGET, smi.SPLIT)
    yield Plan(OURS, smi.Smi(size.services), our_definitions, kinds, ours)
    kinds = (objects.SIDECAR, objects.VIRTUAL_SERVICE, objects.POLICY)
    yield Plan(PEER, Istio(size.services, narrow=True), definitions, kinds, peer)


def main() -> None:
    """Build missing parts, measure, print the table, and write the results."""
    end_with_sigterm()
    options = arguments()
    console = Console(width=160)
    if not are_had((ETCD, API_SERVER, ISTIOD), console.log):
        return
    where = machine()
    if options.profile is not None:
        options.profile.mkdir(parents=True, exist_ok=True)
    size = Size(options.services, options.replicas, options.clients)
    wanted = [item for item in plans(size) if options.only in (None, item.who)]
    result: list[ControlPlaneFigures] = []
    with tempfile.TemporaryDirectory(prefix="kubernetes-") as directory:
        folder = Path(directory)
        with cluster(folder / "cluster") as held:
            fill(held, size, wanted, console.log)
            for plan in wanted:
                own = folder / plan.who
                own.mkdir()
                run = plan.runs(held, size, own, options.profile)
                result.append(measure(held, size, plan, run, options.repeat, options.profile, console.log))
    title = f"{size.services} services, {size.services * size.replicas} Pods, {size.clients} sidecars"
    console.print(table(title, result))
    values = Values()
    for figures in result:
        values |= {
            name("kubernetes", figures.who, size.services, key): of(figures) for key, _, of, _ in rows()
        }
    output = place("kubernetes", options.output, quick=options.quick)
    write(
        output,
        where,
        values,
        size=asdict(size),
        measured=[asdict(figures) for figures in result],
    )
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
