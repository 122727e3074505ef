"""Command `python -m benchmarks.istiod`: istiod on our own mesh, and our server in the same run.

A real Kubernetes API on loopback has the mesh of `benchmarks.mesh` as Kubernetes and Istio objects. istiod
serves the mesh in plaintext to the same sidecars, which present themselves as Istio's. The *narrow* scope is
istiod at its best: a Sidecar resource for each service. In istiod's default scope every sidecar has every
service, as in our permissive mode. Our server reads the same meshes from files, and uses mTLS.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.figures.goals import ALONE, BESIDE, DEFAULT, NARROW
from benchmarks.figures.results import Values, machine, place, write
from benchmarks.in_kubernetes.api import connection, create_all
from benchmarks.in_kubernetes.objects import namespaces
from benchmarks.in_kubernetes.source import InKubernetes, mesh
from benchmarks.measurements.change_cost import MeasuredMesh
from benchmarks.measurements.mesh_tables import costs, starts, tables, values
from benchmarks.measurements.sizes import Bench, Case, MeshSizeFigures, Plan, Repeated, few, measure, stage
from benchmarks.meshes import changes
from benchmarks.meshes import generator as meshes
from benchmarks.peers.istiod import objects
from benchmarks.peers.istiod.plane import definitions, istiod
from benchmarks.peers.istiod.source import Istio, scopes
from benchmarks.processes.clients import sidecars
from benchmarks.processes.programs import Checkout, build, end_with_sigterm
from benchmarks.processes.quiet import settled
from benchmarks.processes.real_parts import are_had
from benchmarks.processes.usage import memory
from meshwright.mesh.workload import Workload
from tools.real_parts.cluster import Cluster, cluster
from tools.real_parts.parts import API_SERVER, ETCD, ISTIOD

Say = Callable[[str], None]


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.istiod", description=__doc__)
    parser.add_argument("--services", type=int, default=1000, help="services of the mesh [1000]")
    parser.add_argument("--scope", choices=("narrow", "default"), help="measure only one scope [both]")
    parser.add_argument(
        "--repeat", type=int, default=12, help="moves of an endpoint [12]; other changes: a third"
    )
    parser.add_argument("--peer", action="store_true", help="measure only istiod")
    parser.add_argument("--server", type=Path, help="measure the server of another checkout as ours")
    parser.add_argument("--quick", action="store_true", help="use 50 services and few repetitions")
    parser.add_argument("--output", type=Path, help="[results/istiod.json, quick results/quick/istiod.json]")
    options = parser.parse_args(argv)
    if options.quick:
        options.services, options.repeat = 50, 3
    return options


@dataclass(frozen=True, slots=True)
class Scope:
    """One of istiod's scopes: its name in the values, and its case."""

    name: str
    case: Case

    @property
    def narrow(self) -> bool:
        """Return whether each service has a Sidecar resource."""
        return self.name == NARROW


def scopes_of(services: int, only: str | None) -> Iterator[Scope]:
    """Yield the scopes: the narrow one is like our policies, the default one like our permissive mode."""
    every = 2 * services
    if only != "default":
        yield Scope(NARROW, Case(services, (0, ALONE, every), whole=True))
    if only != "narrow":
        yield Scope(DEFAULT, Case(services, (0, services, every), permissive=True))


def measure_scope(
    cluster: Cluster, scope: Scope, plan: Plan, folder: Path, print_line: Say
) -> MeshSizeFigures:
    """Start istiod on the objects of the cluster, and measure all stages of a scope."""
    case = scope.case
    with istiod(cluster, folder / f"{scope.name}-log") as (plane, start), connection(cluster) as api:
        print_line(f"{scope.name}, {case.services} services: ready after {start.cpu:.2f} s of CPU")
        # istiod may still work on its first snapshot when it reports that it is ready.
        rested = settled(plane.cpu).cpu
        nodes = {str(workload.proxy_name): objects.node(workload) for workload in _workloads(case.services)}
        tls = folder / scope.name
        tls.mkdir()
        with sidecars(build("loadgen/meshclients"), plane.ads, tls, case.names, nodes) as clients:
            words = Istio(case.services, scope.narrow)
            source = InKubernetes(api, case.services, words)
            served = MeasuredMesh(case.services, source, plane, clients, everyone=not scope.narrow)
            stages = [
                stage(served, count, _wanted(case, count, plan.repeat), plan, print_line)
                for count in case.stages
            ]
        return MeshSizeFigures(
            case.services, case.permissive, start, rested, tuple(stages), memory(plane.pid), churn=None
        )


def _wanted(case: Case, connected: int, repeat: int) -> list[Repeated]:
    if not connected:
        return [(None, few(repeat))]
    if connected != case.stages[-1]:
        return [(changes.ENDPOINT, repeat)]
    others = (changes.TARGET, changes.WEIGHT, None)
    # In the default scope, as in our permissive mode, each change goes to all sidecars and takes far longer.
    moves, times = (few(repeat), 2) if case.permissive else (repeat, few(repeat))
    return [(changes.ENDPOINT, moves), *((change, times) for change in others)]


def _workloads(services: int) -> Iterator[Workload]:
    for number in range(services):
        for replica in range(2):
            yield meshes.workload(number, replica)


def _filled(cluster: Cluster, services: int, print_line: Say) -> None:
    """Write the resource definitions, the settings and the mesh to the cluster."""
    with connection(cluster) as api:
        api.define(definitions())
        api.until_served(objects.SIDECAR, objects.VIRTUAL_SERVICE, objects.POLICY)
    create_all(cluster, namespaces(objects.SYSTEM))
    create_all(cluster, [objects.settings()])
    print_line(f"{create_all(cluster, mesh(services, Istio(services, narrow=False)))} objects written")


def _narrowed(cluster: Cluster, services: int, *, narrow: bool) -> None:
    """Write the Sidecar resource of each service to the cluster, or delete them (`narrow`)."""
    if narrow:
        create_all(cluster, scopes(services))
        return
    with connection(cluster) as api:
        for namespace in namespaces():
            api.delete_all(objects.SIDECAR, namespace.name)


def measure_peer(
    options: argparse.Namespace, folder: Path, print_line: Say
) -> list[tuple[str, MeshSizeFigures]]:
    """Measure istiod in the requested scopes, with a new process for each, on the same objects."""
    plan = Plan(options.repeat, 0)
    result = []
    with cluster(folder / "cluster") as held:
        _filled(held, options.services, print_line)
        for scope in scopes_of(options.services, options.scope):
            _narrowed(held, options.services, narrow=scope.narrow)
            result.append((scope.name, measure_scope(held, scope, plan, folder, print_line)))
    return result


def measure_ours(options: argparse.Namespace, folder: Path, print_line: Say) -> list[MeshSizeFigures]:
    """Measure our server on the meshes on which istiod was measured."""
    plan = Plan(options.repeat, 0, None, Checkout.at(options.server) if options.server else Checkout())
    wanted = [scope.case for scope in scopes_of(options.services, options.scope)]
    bench = Bench(folder, (name for case in wanted for name in case.names))
    return [measure(bench, case, plan, print_line) for case in wanted]


def main() -> None:
    """Build missing parts, measure, print the tables, and write the results."""
    end_with_sigterm()
    options = arguments()
    console = Console(width=220)
    if not are_had((ETCD, API_SERVER, ISTIOD), console.log):
        return
    where = machine()
    with tempfile.TemporaryDirectory(prefix="istiod-") as name:
        folder = Path(name)
        peers = measure_peer(options, folder, console.log)
        (folder / "ours").mkdir()
        ours = [] if options.peer else measure_ours(options, folder / "ours", console.log)
    result = Values()
    for who, size in peers:
        result |= values([size], plane=who)
        console.print(f"[bold]{who}[/bold]")
        console.print(starts([size]), costs([size]))
    for table in tables(ours, None, None, result):
        console.print(table)
    details = {
        "peers": {who: asdict(size) for who, size in peers},
        "ours": [asdict(figures) for figures in ours],
    }
    output = place("istiod", options.output, quick=options.quick)
    write(output, where, result | values(ours, plane=BESIDE), **details)
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
