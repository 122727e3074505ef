"""Command `python -m benchmarks.reports`: cost of the agents' reports for the control plane.

Agents report the counters of their proxies to the real server. As with real agents, each proxy has its own
certificate, and each report its own connection. Nothing else happens between reports, and the cost of idling
is subtracted.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import results
from benchmarks.processes import credentials
from benchmarks.processes.plane import ControlPlane, serving
from benchmarks.processes.usage import memory
from meshwright.agent.statistics.edge_totals import MOST_EDGES
from meshwright.agent.statistics.increments import NOTHING, since
from meshwright.agent.statistics.report import Reports
from meshwright.agent.statistics.report_client import send
from meshwright.agent.statistics.statistics import Bin, Statistics
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE
from meshwright.traffic.traffic import every_seconds
from tools.ports import free_port

A_SECOND = 50
"""Reports per second: a few connections at a time, as from many proxies, and not a thousand at once."""
TIMES = tuple(Bin(least, 1.0, 3) for least in (1.0, 7.0, 20.0, 30.0, 80.0))


def counted(edges: int) -> Statistics:
    """Return the statistics of an Envoy with calls to `edges` services, and with as many backends."""
    names = [f"rds-outbound.namespace-{n % 10}/service-{n}|80" for n in range(edges)]
    back = [f"namespace-{n % 10}/service-{n}|8080" for n in range(edges)]
    http = {"downstream_rq_2xx": 100, "downstream_rq_5xx": 1, "downstream_cx_total": 2}
    bytes_ = {"downstream_cx_rx_bytes_total": 10_000, "downstream_cx_tx_bytes_total": 100_000}
    behind = {"upstream_rq_2xx": 100, "upstream_cx_total": 1}
    return Statistics(
        {
            "http": dict.fromkeys(names, http | bytes_),
            "tcp": {},
            "vhost": {},
            "cluster": dict.fromkeys(back, behind),
        },
        {
            "http": dict.fromkeys(names, TIMES),
            "tcp": {},
            "vhost": {},
            "cluster": dict.fromkeys(back, TIMES),
        },
    )


def files(directory: Path, name: str) -> Path:
    """Return a folder with the credentials of a proxy, as an agent has them."""
    own = directory / f"own-{name}"
    own.mkdir()
    for made, wanted in ((f"{name}.pem", CHAIN_FILE), (f"{name}.key", KEY_FILE), ("ca.pem", AUTHORITY_FILE)):
        (own / wanted).symlink_to(directory / made)
    return own


async def report_all(at: HostPort, proxies: Sequence[Path], reports: Sequence[Reports], edges: int) -> int:
    """Let each proxy report once, A_SECOND of them per second; return the bytes of a report."""
    written = [item.next(since(NOTHING, counted(edges)), 60.0) for item in reports]

    async def one(number: int, own: Path, report: bytes) -> None:
        await asyncio.sleep(number / A_SECOND)
        await send(at, "ads.cluster.local", own, report)

    # Not strict, because `count()` has no end.
    await asyncio.gather(*(one(*item) for item in zip(count(), proxies, written, strict=False)))
    return len(written[0])


def measured(
    plane: ControlPlane, at: HostPort, proxies: Sequence[Path], edges: int, rounds: int
) -> tuple[float, ...]:
    """Return CPU seconds of a report, its bytes, and added MiB, after a first round that does not count.

    After each round the server idles for the same time, and the CPU time of idling is subtracted.
    """
    reports = [Reports(f"run-{edges}-{number}") for number in range(len(proxies))]
    # This round creates the counters of all edges in the server, and does not count.
    asyncio.run(report_all(at, proxies, reports, edges))
    spent, size, before = 0.0, 0, memory(plane.pid).resident
    for _ in range(rounds):
        began, cpu = time.monotonic(), plane.cpu()
        size = asyncio.run(report_all(at, proxies, reports, edges))
        took, spent = time.monotonic() - began, spent + plane.cpu() - cpu
        cpu = plane.cpu()
        time.sleep(took)
        spent -= plane.cpu() - cpu
    return spent / rounds / len(proxies), size, memory(plane.pid).resident - before


def main() -> None:
    """Measure, print the table, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reports", description=__doc__)
    parser.add_argument("--proxies", type=int, default=1000)
    parser.add_argument(
        "--edges",
        type=int,
        nargs="*",
        default=[0, 5, MOST_EDGES],
        help="numbers of services called by each proxy",
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    table = Table(
        "edges of each", "bytes", "CPU of a report", f"of a processor, {options.proxies} proxies", "memory"
    )
    values: results.Values = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "mesh").mkdir()
        (root / "certificates").mkdir()
        names = [f"uuid-{n}.service-{n // 2}.namespace-{n % 10}" for n in range(options.proxies)]
        credentials.issue_each(root / "state", root / "certificates", names)
        proxies = [files(root / "certificates", name) for name in names]
        at = HostPort("127.0.0.1", free_port("127.0.0.1"))
        sources = ("--mesh", str(root / "mesh"), "--set", f"renewal_address={at}")
        with serving(sources, root / "state") as (plane, _):
            for edges in options.edges:
                cpu, size, grown = measured(plane, at, proxies, edges, options.rounds)
                part = cpu * options.proxies / every_seconds(options.proxies)
                values[results.name("reports", edges, "cpu")] = cpu
                values[results.name("reports", edges, "part")] = part
                table.add_row(
                    str(edges),
                    f"{size:.0f}",
                    f"{1000 * cpu:.2f} ms",
                    f"{part:.2%}",
                    f"{grown:+.1f} MiB",
                )
    Console().print(table)
    path = results.place("reports", options.output, quick=False)
    results.write(path, results.machine(), values)


if __name__ == "__main__":
    main()
