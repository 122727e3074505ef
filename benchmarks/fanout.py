"""Command `python -m benchmarks.fanout`: cost of a push, here, in go-control-plane and in a bare handler.

The servers get the same load in turn, for several rounds. CPU time is user and system time of the server
process from the first change to the last acknowledgement. Compare figures only within one run, because they
vary by a fifth from run to run even on one machine.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.figures.results import Values, machine, name, place, write
from benchmarks.processes.credentials import issue
from benchmarks.processes.programs import PEERS, Checkout, Load, build, end_with_sigterm, loading, serving

PROTOCOLS: Final = ("delta", "sotw")
SYNTHETIC: Final = "benchmarks.synthetic_server"
"""Module of our server, run from the measured checkout."""
OURS: Final = "meshwright"
PEER: Final = "go-control-plane"
BARE: Final = "bare grpc.aio"
BARE_MODULE: Final = "benchmarks.peers.bare_grpc"
FLOOR: Final = "P1"
"""Prefix of the workloads for the bare handler, which knows only one resource."""
SETTLE: Final = 0.3
"""Seconds until the server has processed the last acknowledgements, whose CPU time is included."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Proxies that each subscribe to several assignments of ten endpoints; one assignment changes."""

    name: str
    proxies: int
    names: int
    protocol: str
    bumps: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A measured server: its command, its working folder, and the prefix of the workloads it knows."""

    name: str
    command: tuple[str | Path, ...]
    root: Path = PEERS
    knows: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Result of one server with one workload in one round."""

    workload: str
    server: str
    round: int
    connect_cpu_seconds: float
    push_cpu_us: float
    rss_mib: float
    peak_mib: float
    connect: Load
    push: Load


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fanout", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use a tenth of the load and one round")
    parser.add_argument("--rounds", type=int, default=2, help="rounds, each with all servers [2]")
    parser.add_argument("--bumps", type=int, default=30, help="changes per measurement [30]")
    parser.add_argument("--only", help="only workloads with this prefix, for example P1")
    parser.add_argument("--alone", action="store_true", help="only our server, without the peers")
    parser.add_argument(
        "--profile", type=Path, help="directory for profiles of our server, which make it slower"
    )
    parser.add_argument("--server", type=Path, help="measure the server of another checkout")
    parser.add_argument("--output", type=Path, help="[results/fanout.json, quick results/quick/fanout.json]")
    return parser.parse_args(argv)


def workloads(bumps: int, *, quick: bool) -> Iterator[Workload]:
    """Yield the workloads of the fan-out goals: P1, and P2 and P3, which also measure connecting (P4)."""
    share = 10 if quick else 1
    for protocol in PROTOCOLS:
        yield Workload(f"P1 {protocol}", 1000 // share, 1, protocol, bumps)
    for number, protocol in zip(("P2", "P3"), PROTOCOLS, strict=True):
        yield Workload(f"{number} {protocol}", 300 // share, 2000 // share, protocol, bumps)


def measure(
    workload: Workload, subject: Subject, generator: Path, tls: Path, number: int, profile: Path | None
) -> Measurement:
    """Measure one server with one workload."""
    sized = [*subject.command, "--services", str(workload.names), "--endpoints", "10"]
    if profile is not None:
        sized += ["--profile", profile / f"{workload.name.replace(' ', '-')}.txt"]
    options = (
        "-protocol",
        workload.protocol,
        "-proxies",
        str(workload.proxies),
        "-names",
        str(workload.names),
    )
    with (
        serving(sized, tls, root=subject.root) as server,
        loading(generator, server, tls, *options) as load,
    ):
        # Connecting and pushing are charged separately; the pauses include the work after the last ACK.
        before = server.cpu_seconds()
        connect = load.do("connect")
        time.sleep(SETTLE)
        connected = server.cpu_seconds()
        push = load.do(f"bump {workload.bumps}")
        time.sleep(SETTLE)
        pushed = server.cpu_seconds()
        rss, peak = server.memory_mib()
    return Measurement(
        workload.name,
        subject.name,
        number,
        connected - before,
        (pushed - connected) / (workload.proxies * workload.bumps) * 1e6,
        rss,
        peak,
        connect,
        push,
    )


def table(measurements: Sequence[Measurement]) -> Table:
    """Return a table with the medians of all rounds for each server, grouped by workload."""
    out = Table(title="fan-out: server CPU per push with its ACK, time to the last ACK, cost of connecting")
    for heading in ("workload", "server"):
        out.add_column(heading)
    for heading in (
        "CPU/push µs",
        "to peer",
        "to floor",
        "last ACK p50 ms",
        "p99",
        "max",
        "kB/push",
        "connect CPU s",
        "to peer",
        "connect s",
        "connect MB",
        "RSS MiB",
        "peak MiB",
    ):
        out.add_column(heading, justify="right")
    for workload in dict.fromkeys(m.workload for m in measurements):
        of_it = [m for m in measurements if m.workload == workload]
        for server in dict.fromkeys(m.server for m in of_it):
            out.add_row(workload, server, *_cells([m for m in of_it if m.server == server], of_it))
        out.add_section()
    return out


def _cells(mine: Sequence[Measurement], all_of_it: Sequence[Measurement]) -> Iterator[str]:
    peers, floor = (
        [m for m in all_of_it if m.server == other] if mine[0].server == OURS else []
        for other in (PEER, BARE)
    )
    pushes = mine[0].push.proxies * mine[0].push.rounds
    # Medians, because one slow round would distort a mean.
    yield f"{statistics.median(m.push_cpu_us for m in mine):.0f}"
    yield _ratio([m.push_cpu_us for m in mine], [m.push_cpu_us for m in peers])
    yield _ratio([m.push_cpu_us for m in mine], [m.push_cpu_us for m in floor])
    yield f"{statistics.median(m.push.last_ack_ms.p50 for m in mine):.0f}"
    yield f"{statistics.median(m.push.last_ack_ms.p99 for m in mine):.0f}"
    yield f"{max(m.push.last_ack_ms.max for m in mine):.0f}"
    yield f"{statistics.median(m.push.bytes for m in mine) / pushes / 1e3:.1f}"
    yield f"{statistics.median(m.connect_cpu_seconds for m in mine):.2f}"
    yield _ratio([m.connect_cpu_seconds for m in mine], [m.connect_cpu_seconds for m in peers])
    yield f"{statistics.median(m.connect.seconds for m in mine):.2f}"
    yield f"{statistics.median(m.connect.bytes for m in mine) / 1e6:.1f}"
    yield f"{statistics.median(m.rss_mib for m in mine):.0f}"
    yield f"{max(m.peak_mib for m in mine):.0f}"


def _ratio(mine: Sequence[float], peers: Sequence[float]) -> str:
    return f"{statistics.median(mine) / statistics.median(peers):.3f}" if peers else ""


def values(measurements: Sequence[Measurement]) -> Values:
    """Return the medians of all rounds by name."""
    result = Values()
    for key in dict.fromkeys((m.workload, m.server) for m in measurements):
        mine = [m for m in measurements if (m.workload, m.server) == key]
        result |= {
            name("fanout", *key, "push_us"): statistics.median(m.push_cpu_us for m in mine),
            name("fanout", *key, "connect_s"): statistics.median(m.connect_cpu_seconds for m in mine),
            name("fanout", *key, "peak_mib"): max(m.peak_mib for m in mine),
        }
    return result


def subjects(checkout: Checkout, *, alone: bool) -> Iterator[Subject]:
    """Yield our server, and without `alone` also the peers to measure."""
    yield Subject(OURS, checkout.module(SYNTHETIC), checkout.root)
    if not alone:
        yield Subject(PEER, (build("peers/go-control-plane"),))
        yield Subject(BARE, Checkout().module(BARE_MODULE), knows=FLOOR)


def main() -> None:
    """Measure, print the table, and write the results."""
    end_with_sigterm()
    options = arguments()
    console = Console(width=160)
    generator = build("loadgen")
    servers = list(
        subjects(Checkout.at(options.server) if options.server else Checkout(), alone=options.alone)
    )
    if options.profile is not None:
        options.profile.mkdir(parents=True, exist_ok=True)
    measurements = []
    where = machine()
    with tempfile.TemporaryDirectory(prefix="fanout-") as directory:
        tls = Path(directory)
        issue(tls)
        for number in range(1 if options.quick else options.rounds):
            for workload in workloads(options.bumps, quick=options.quick):
                if options.only and not workload.name.startswith(options.only):
                    continue
                # The servers alternate, so that a slow period of the machine affects all of them.
                for each in servers:
                    if not workload.name.startswith(each.knows):
                        continue
                    started = time.monotonic()
                    profile = options.profile if each.name == OURS else None
                    measurements.append(measure(workload, each, generator, tls, number, profile))
                    console.print(
                        f"{workload.name}, {each.name}: {time.monotonic() - started:.0f} s", style="dim"
                    )
    console.print(table(measurements))
    output = place("fanout", options.output, quick=options.quick)
    write(output, where, values(measurements), measurements=[asdict(m) for m in measurements])
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
