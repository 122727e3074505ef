"""Command `python -m benchmarks.replicas`: several control planes of one mesh, under the load generator.

The mesh is a folder of manifests that all servers read; CA, ledger and service certificates are records in a
real Kubernetes API. Measured are:

- the CPU time from the start until all sidecars are served, by one server with all sidecars, and by two
  with half of them each. The goal is at most 1.6 times as much for both together: for example, 16 s for two
  servers if one server needs 10 s;
- with three servers: CPU time, memory and idling of each with its sidecars, the time until all are
  configured, and the time of an endpoint's move to the last ACK at any server.

etcd does not wait for the disk here, so times of writes are lower limits.
"""

import argparse
import contextlib
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.figures.results import Values, machine, name, place, write
from benchmarks.measurements.change_cost import distribution
from benchmarks.meshes import changes
from benchmarks.meshes import generator as meshes
from benchmarks.meshes.changes import InFolder
from benchmarks.meshes.manifests import MeshFolder
from benchmarks.processes.clients import Sidecars, sidecars
from benchmarks.processes.plane import ControlPlane, serving
from benchmarks.processes.programs import Distribution, build, end_with_sigterm
from benchmarks.processes.quiet import idling, settled
from benchmarks.processes.real_parts import are_had
from benchmarks.processes.usage import Memory, memory
from benchmarks.records import DEFINITIONS, until_listed
from certs.custody import AuthorityWithLedger
from certs.proxy import issue_proxy
from certs.shared_records.custody import LISTED, SharedStores, open_shared
from meshwright.controller.kubernetes.home import HOME
from meshwright.controller.sharing.store.backends import SECRETS as IN_SECRET
from meshwright.controller.sharing.store.listed_records import ListedRecords
from meshwright.controller.sharing.store.store_thread import StoreThread
from meshwright.kube.api import Api
from meshwright.kube.builtin import NAMESPACES, SECRETS
from meshwright.kube.connection.connection import find_connection
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.records.contract import ReplicaId
from meshwright.records.kubernetes.definition import DEFINITION
from meshwright.records.kubernetes.store import CUSTODY, KubernetesRecords
from tools.real_parts.cluster import RunningCluster, cluster
from tools.real_parts.parts import API_SERVER, ETCD

TOGETHER: Final = 1.6
"""Goal: CPU time of two servers with half of the sidecars each, divided by the time of one with all."""
ISSUED_AT_ONCE: Final = 16
LIST_SECONDS: Final = 120.0


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicas", description=__doc__)
    parser.add_argument("--services", type=int, default=2250, help="services, two sidecars each [2250]")
    parser.add_argument("--shared", type=int, default=1000, help="services for one and two servers [1000]")
    parser.add_argument("--moves", type=int, default=50, help="moves of an endpoint [50]")
    parser.add_argument(
        "--quick", action="store_true", help="use 45 services, and 20 for one and two servers"
    )
    parser.add_argument("--output", type=Path, help="[results/replicas.json, quick results/quick/...]")
    options = parser.parse_args(argv)
    if options.quick:
        options.services, options.shared, options.moves = 45, 20, 5
    return options


@dataclass(frozen=True, slots=True)
class Serving:
    """Cost of one server from its start until its sidecars are configured, and at rest afterwards."""

    sidecars: int
    ready_cpu: float
    serve_cpu: float
    configured_ms: Distribution
    memory: Memory
    idle: float
    refused: int


@dataclass(frozen=True, slots=True)
class Replica:
    """A server and its sidecars."""

    plane: ControlPlane
    sidecars: Sidecars
    ready_cpu: float


class Store:
    """A mesh in a Kubernetes API, with the certificates of its proxies."""

    def __init__(self, running: RunningCluster, folder: Path) -> None:
        self._running, self._folder = running, folder
        self._passphrase = folder / "passphrase"
        self._passphrase.touch(mode=0o600)
        self._passphrase.write_text("the passphrase of a benchmark\n")
        self.tls = folder / "tls"
        self.tls.mkdir()

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the flags of every server."""
        kubeconfig = ("--kubernetes", "--kubeconfig", str(self._running.kubeconfig), "--namespaces", HOME)
        return (
            *kubeconfig,
            *("--set", "store=kubernetes", "--set", f"key_passphrase_file={self._passphrase}"),
        )

    def issue(self, names: Sequence[str]) -> None:
        """Make the CA, and issue a certificate for each proxy, several at a time."""
        thread, replica = StoreThread(), ReplicaId("issuer")
        api = Api(find_connection(self._running.kubeconfig, ""))
        records = ListedRecords(KubernetesRecords(api, HOME, replica, _now, in_secret=IN_SECRET.__contains__))
        thread.run(api.__aenter__())
        try:
            thread.run(_prepare(api))
            state = self._folder / "issuer"
            stores = SharedStores.open(records, replica, thread.loop, state, self._passphrase)
            thread.start("ledger", lambda: stores.ledger.follow(lambda _: None))
            thread.start("pairs", lambda: stores.pairs.follow(lambda _: None))
            thread.run(records.listed(LISTED, LIST_SECONDS))
            opened = open_shared(stores, state, TrustDomain("cluster.local"), _now(), self._passphrase)
            (self.tls / "ca.pem").write_bytes(opened.authority.trust_bundle())
            with ThreadPoolExecutor(ISSUED_AT_ONCE) as pool:
                list(pool.map(lambda each: self._issue(opened, each), names))
        finally:
            thread.run(api.__aexit__(None, None, None))
            thread.close()

    def _issue(self, opened: AuthorityWithLedger, each: str) -> None:
        proxy = ProxyName.parse(each)
        pair = issue_proxy(opened.authority, opened.ledger, proxy, timedelta(days=1), _now())
        for end, content in (("pem", pair.chain_pem), ("key", pair.key.reveal())):
            path = self.tls / f"{each}.{end}"
            path.touch(mode=0o600)
            path.write_bytes(content)


def _now() -> datetime:
    return datetime.now(UTC)


async def _prepare(api: Api) -> None:
    """Create the namespace and the definition of records, and wait until records are served."""
    await api.create(NAMESPACES, None, {"metadata": {"name": HOME}})
    await api.create(SECRETS, HOME, {"metadata": {"name": CUSTODY}, "type": "Opaque"})
    await api.create(DEFINITIONS, None, DEFINITION)
    await until_listed(api, HOME)


@contextlib.contextmanager
def replicas(
    store: Store, mesh: Path, folder: Path, program: Path, names: Sequence[str], count: int
) -> Iterator[list[Replica]]:
    """Start servers one after the other, each with the same number of sidecars, not connected yet."""
    with contextlib.ExitStack() as ends:
        result = []
        for number in range(count):
            own = folder / f"{count}-{number}"
            own.mkdir()
            flags = ("--mesh", str(mesh), *store.flags)
            plane, start = ends.enter_context(serving(flags, own / "state"))
            # The load generator's folder also has the list of its sidecars.
            credentials = own / "credentials"
            credentials.mkdir()
            for file in store.tls.iterdir():
                (credentials / file.name).symlink_to(file)
            clients = ends.enter_context(sidecars(program, plane.ads, credentials, names[number::count]))
            result.append(Replica(plane, clients, start.cpu))
        yield result


def connect(running: Sequence[Replica]) -> list[Serving]:
    """Connect the sidecars of all servers at once, and return the cost of each server."""
    before, began = [replica.plane.cpu() for replica in running], time.time()
    with ThreadPoolExecutor(len(running)) as pool:
        reports = list(pool.map(lambda replica: replica.sidecars.connect(), running))
        list(pool.map(lambda replica: replica.sidecars.wait(0, 1.0), running))
    served = [replica.plane.cpu() for replica in running]
    # All servers must be at rest before the first measurement of idling, because they share the cores.
    for replica in running:
        settled(replica.plane.cpu)
    return [
        Serving(
            replica.sidecars.connected,
            round(replica.ready_cpu, 2),
            round(after - first, 2),
            distribution((moment - began) * 1000 for moment in report.configured),
            memory(replica.plane.pid),
            round(idling(replica.plane.cpu, 5), 4),
            report.refused,
        )
        for replica, report, first, after in zip(running, reports, before, served, strict=True)
    ]


def moves(running: Sequence[Replica], source: InFolder, services: int, count: int) -> list[float]:
    """Move an endpoint repeatedly; return the milliseconds to the last ACK at any server."""
    concerned = meshes.sidecar_names(meshes.callers(changes.MOVED, services))
    wanted = [replica.sidecars.among(concerned) for replica in running]
    result = []
    for number in range(count):
        # A random pause, so that a move does not always meet the same phase of the servers' timers.
        time.sleep(random.uniform(0.1, 0.4))
        for replica in running:
            replica.sidecars.wait(0, 0)
        began = time.time()
        changes.ENDPOINT.write(source, number)
        with ThreadPoolExecutor(len(running)) as pool:
            reports = pool.map(
                lambda pair: pair[0].sidecars.wait(len(pair[1]), 0), zip(running, wanted, strict=True)
            )
            result.append((max(report.last_ack for report in reports) - began) * 1000)
    return result


@dataclass(frozen=True, slots=True)
class Figures:
    """All results: one, two and three servers, and the latency of an endpoint's move in milliseconds."""

    one: list[Serving]
    two: list[Serving]
    three: list[Serving]
    moved_ms: Distribution

    @property
    def together(self) -> float:
        """Return the CPU time of two servers until all are served, divided by the time of one server."""
        return total(self.two) / total(self.one)


def total(servings: Sequence[Serving]) -> float:
    """Return the CPU seconds of all servers until their sidecars are served."""
    return sum(each.ready_cpu + each.serve_cpu for each in servings)


def measure(options: argparse.Namespace, folder: Path, console: Console) -> Figures:
    """Start a Kubernetes API and all servers, and measure."""
    program = build("loadgen/meshclients")
    with cluster(folder / "cluster") as running:
        store = Store(running, folder)
        every = meshes.sidecar_names(range(max(options.services, options.shared)))
        began = time.monotonic()
        store.issue(every)
        console.log(f"{len(every)} certificates issued in {time.monotonic() - began:.0f} s")
        shared = InFolder(MeshFolder(folder / "shared"), options.shared)
        shared.folder.write(meshes.files(options.shared))
        names = meshes.sidecar_names(range(options.shared))
        results: list[list[Serving]] = []
        for count in (1, 2):
            with replicas(store, shared.folder.path, folder, program, names, count) as started:
                results.append(connect(started))
                console.log(f"{count} servers: {total(results[-1]):.2f} s of CPU until all are served")
        whole = InFolder(MeshFolder(folder / "whole"), options.services)
        whole.folder.write(meshes.files(options.services))
        names = meshes.sidecar_names(range(options.services))
        with replicas(store, whole.folder.path, folder, program, names, 3) as started:
            results.append(connect(started))
            latencies = moves(started, whole, options.services, options.moves)
        one, two, three = results
        return Figures(one, two, three, distribution(latencies))


def table(figures: Figures) -> Table:
    """Return a table with a row for each server."""
    out = Table(title="several servers of one mesh")
    headings = ("servers", "sidecars", "ready CPU s", "serve CPU s", "last configured s", "MiB", "idle CPU %")
    for heading in headings:
        out.add_column(heading, justify="right")
    for count, servings in enumerate((figures.one, figures.two, figures.three), 1):
        for each in servings:
            out.add_row(
                str(count),
                str(each.sidecars),
                f"{each.ready_cpu:.2f}",
                f"{each.serve_cpu:.2f}",
                f"{each.configured_ms.max / 1000:.1f}",
                f"{each.memory.share:.0f}",
                f"{each.idle * 100:.1f}",
            )
    return out


def values(figures: Figures) -> Values:
    """Return the results as values by name."""
    result = Values()
    result[name("replicas", "two_to_one_cpu")] = round(figures.together, 3)
    result[name("replicas", "moved_p50_ms")] = figures.moved_ms.p50
    result[name("replicas", "moved_p99_ms")] = figures.moved_ms.p99
    for key, read in (
        ("memory_mib", lambda each: each.memory.share),
        ("serve_cpu_s", lambda each: each.serve_cpu),
        ("configured_s", lambda each: each.configured_ms.max / 1000),
    ):
        result[name("replicas", "three", key)] = round(statistics.fmean(map(read, figures.three)), 2)
    return result


def main() -> None:
    """Measure, print the table, and write the results."""
    end_with_sigterm()
    options = arguments()
    console = Console(width=150)
    if not are_had((ETCD, API_SERVER), console.log):
        return
    os.environ["POD_NAMESPACE"] = HOME
    where = machine()
    with tempfile.TemporaryDirectory(prefix="replicas-") as folder:
        figures = measure(options, Path(folder), console)
    console.print(table(figures))
    console.print(
        f"CPU of two servers together: {figures.together:.2f} times one server's (goal: at most {TOGETHER}); "
        f"an endpoint moves: {figures.moved_ms.p50:.0f} ms, p99 {figures.moved_ms.p99:.0f} ms to the last ACK"
    )
    output = place("replicas", options.output, quick=options.quick)
    write(output, where, values(figures), figures=asdict(figures))
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
