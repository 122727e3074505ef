"""Command `python -m benchmarks.gateway_routes`: HTTPRoutes from a real API server to real Envoys.

Measured are:

- convergence: the time from the API server's answer to a new HTTPRoute until the first request that the route
  decides, at a real Envoy, one route after the other;
- many routes: the time until each has its status, and the server's CPU time until then;
- an edit: the server's CPU time for a changed backend of one route, in a mesh with few and with many routes.
  The goal is at most 1.2 times as much with 1000 routes as with 10.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.figures.results import machine, name, place, write
from benchmarks.gateway_routes import mesh
from benchmarks.gateway_routes.sidecars import Caller, applications, envoys
from benchmarks.in_kubernetes.api import Api, connection
from benchmarks.kubernetes import our_definitions
from benchmarks.processes.credentials import issue_each
from benchmarks.processes.plane import ControlPlane, serving
from benchmarks.processes.programs import BenchmarkError, end_with_sigterm
from benchmarks.processes.quiet import CpuUsage, idled, settled
from benchmarks.processes.real_parts import are_had
from tools.real_parts.building import shared
from tools.real_parts.cluster import cluster
from tools.real_parts.parts import API_SERVER, ETCD, GATEWAY_DEFINITIONS

FEW: Final = 10
STATUS_PATIENCE: Final = 300.0
"""Maximum seconds until all routes have a status: the server writes some twenty in a second."""
DEFINITIONS: Final = ("httproutes", "grpcroutes", "tlsroutes", "tcproutes", "referencegrants")


@dataclass(frozen=True, slots=True)
class Figures:
    """Results of one run; times are in seconds, and CPU times in milliseconds."""

    routes: int
    median: float
    slowest: float
    many: int
    statuses: float
    statuses_cpu: float
    edit_few: float
    edit_many: float


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway_routes", description=__doc__)
    parser.add_argument("--routes", type=int, default=100, help="routes that are timed one by one [100]")
    parser.add_argument("--many", type=int, default=1000, help="routes of the large mesh [1000]")
    parser.add_argument("--services", type=int, default=200, help="Services of the large mesh [200]")
    parser.add_argument("--edits", type=int, default=20, help="edits of one route [20]")
    parser.add_argument("--quick", action="store_true", help="use 10 routes, 50 on 10 Services, 4 edits")
    parser.add_argument("--output", type=Path, help="[results/gateway-routes.json, quick results/quick/...]")
    options = parser.parse_args(argv)
    if options.quick:
        options.routes, options.many, options.services, options.edits = 10, 50, 10, 4
    return options


def converge(api: Api, caller: Caller, routes: int) -> list[float]:
    """Return the seconds from the API server's answer to the first decided request, for each route."""
    result = []
    for number in range(routes):
        api.create(mesh.route(number, 1))
        result.append(caller.until_answered(0, f"/{number}", mesh.BACKENDS[1]))
    return result


def edit_cost(plane: ControlPlane, api: Api, caller: Caller, services: int, edits: int) -> float:
    """Return the median of the server's CPU milliseconds for a changed backend of route 0, until it rests.

    What idling costs is taken off, because a server rests a second or more before it counts as idle.
    """
    result = []
    for number in range(edits):
        settled(plane.cpu)
        idle, backend = idled(plane.cpu, 1), mesh.BACKENDS[number % 2]
        before, began = plane.cpu(), time.time()
        api.merge(mesh.route(0, services, backend))
        caller.until_answered(0, "/0", backend)
        rested = settled(plane.cpu)
        result.append(CpuUsage(rested.cpu - before, rested.moment - began).beyond(idle) * 1000)
    return statistics.median(result)


def until_accepted(api: Api, count: int) -> float:
    """Wait until so many routes are accepted; return the seconds."""
    began = time.monotonic()
    while (accepted := sum(map(_is_accepted, api.list(mesh.ROUTE, mesh.NAMESPACE_NAME)))) < count:
        if time.monotonic() - began > STATUS_PATIENCE:
            raise BenchmarkError(f"{accepted} of {count} routes are accepted after {STATUS_PATIENCE:.0f} s")
        time.sleep(0.1)
    return time.monotonic() - began


def _is_accepted(document: dict[str, object]) -> bool:
    status = document.get("status")
    parents = status.get("parents", []) if isinstance(status, dict) else []
    return any(
        condition["type"] == "Accepted" and condition["status"] == "True"
        for parent in parents
        for condition in parent["conditions"]
    )


def measure(api: Api, plane: ControlPlane, options: argparse.Namespace, console: Console) -> Figures:
    """Measure all, on a cluster with the Services."""
    caller = Caller()
    caller.until_answered(0, "/", mesh.BACKENDS[0])
    times = converge(api, caller, options.routes)
    console.log(f"{len(times)} routes decided their first request")
    # An edit is measured with few routes first, so most of the timed ones go.
    for number in range(FEW, options.routes):
        api.delete(mesh.route(number, 1))
    few = edit_cost(plane, api, caller, 1, options.edits)
    for number in range(min(FEW, options.routes)):
        api.delete(mesh.route(number, 1))
    # The end of the deletions is not part of what many routes cost.
    before = settled(plane.cpu).cpu
    began = time.monotonic()
    for number in range(options.many):
        api.create(mesh.route(number, options.services))
    until_accepted(api, options.many)
    statuses, cpu = time.monotonic() - began, settled(plane.cpu).cpu - before
    console.log(f"{options.many} routes accepted after {statuses:.1f} s")
    many = edit_cost(plane, api, caller, options.services, options.edits)
    return Figures(
        len(times), statistics.median(times), max(times), options.many, statuses, cpu * 1000, few, many
    )


def table(figures: Figures) -> Table:
    """Return the table of the results, with the goals."""
    made = Table(title="Routes of the Gateway API", title_justify="left")
    for heading in ("what", "measured", "goal"):
        made.add_column(heading)
    ratio = figures.edit_many / figures.edit_few
    made.add_row(f"first request, {figures.routes} routes, median", f"{figures.median:.3f} s", "0.5 s")
    made.add_row("the slowest", f"{figures.slowest:.3f} s", "2 s")
    made.add_row(f"{figures.many} routes until all statuses", f"{figures.statuses:.1f} s", "")
    made.add_row("server's CPU until then", f"{figures.statuses_cpu / 1000:.2f} s", "")
    made.add_row(f"an edit with {FEW} routes, CPU", f"{figures.edit_few:.1f} ms", "")
    made.add_row(
        f"an edit with {figures.many} routes, CPU", f"{figures.edit_many:.1f} ms ({ratio:.2f})", "1.2"
    )
    return made


def fill(api: Api, services: int) -> None:
    """Write the definitions, and the mesh without routes."""
    for text in (our_definitions(), *map(_definition, DEFINITIONS)):
        api.define(text)
    api.until_served(mesh.ROUTE, mesh.WORKLOAD, mesh.TARGET, mesh.TCP_ROUTE)
    for item in mesh.objects(services):
        api.create(item)


def credentials(folder: Path) -> None:
    """Issue the certificates of the sidecars, each into a folder of its own, by the CA in `state`."""
    names = {workload: f"{workload}.{workload}.{mesh.NAMESPACE_NAME}" for workload in mesh.ADDRESSES}
    tls = folder / "tls"
    tls.mkdir()
    issue_each(folder / "state", tls, names.values())
    for workload, common_name in names.items():
        own = folder / workload
        own.mkdir()
        for source, target in (("ca", "ca.pem"), (common_name, "proxy.pem")):
            (own / target).write_bytes((tls / f"{source}.pem").read_bytes())
        (own / "proxy.key").write_bytes((tls / f"{common_name}.key").read_bytes())
        (own / "proxy.key").chmod(0o600)


def main() -> None:
    """Build missing parts, measure, print the table, and write the results."""
    end_with_sigterm()
    options = arguments()
    console = Console(width=140)
    if not are_had((ETCD, API_SERVER, GATEWAY_DEFINITIONS), console.log):
        return
    where = machine()
    with (
        tempfile.TemporaryDirectory(prefix="gateway-routes-") as directory,
        applications(),
        cluster(Path(directory) / "cluster") as made,
        connection(made) as api,
    ):
        folder = Path(directory)
        fill(api, options.services)
        credentials(folder)
        source = ("--kubernetes", "--kubeconfig", str(made.kubeconfig))
        with serving(source, folder / "state") as (plane, _), envoys(folder, plane.ads):
            figures = measure(api, plane, options, console)
    console.print(table(figures))
    values = {name("gateway-routes", key): value for key, value in asdict(figures).items()}
    output = place("gateway-routes", options.output, quick=options.quick)
    write(output, where, values, measured=asdict(figures))
    console.print(f"written to {output}")


def _definition(plural: str) -> str:
    return (shared(GATEWAY_DEFINITIONS) / f"gateway.networking.k8s.io_{plural}.yaml").read_text("utf-8")


if __name__ == "__main__":
    main()
