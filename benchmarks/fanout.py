"""`python -m benchmarks.fanout`: what a push costs, here, in go-control-plane and in a bare handler.

The servers get the same load in turn, for several rounds; CPU is the server process's own, user and
system, from the first change to the last acknowledgement. Compare within one run only: figures of one
machine vary by a fifth from run to run.
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
"""The module of our server; a checkout's own is measured."""
OURS: Final = "meshwright"
PEER: Final = "go-control-plane"
BARE: Final = "bare grpc.aio"
BARE_MODULE: Final = "benchmarks.peers.bare_grpc"
FLOOR: Final = "P1"
"""The workloads in which the bare handler takes part: it knows one resource."""
SETTLE: Final = 0.3
"""Seconds for a server to end its work on the last acknowledgements, which its CPU is charged with."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Proxies that each subscribe to so many assignments of ten endpoints, of which one changes."""

    name: str
    proxies: int
    names: int
    protocol: str
    bumps: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A server that is measured, the folder it runs in, and the workloads, by their beginning, it knows."""

    name: str
    command: tuple[str | Path, ...]
    root: Path = PEERS
    knows: str = ""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One server under one workload, once."""

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
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fanout", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, once, to try")
    parser.add_argument("--rounds", type=int, default=2, help="how often each server is measured [2]")
    parser.add_argument("--bumps", type=int, default=30, help="changes per measurement [30]")
    parser.add_argument("--only", help="workloads whose name begins so, for example P1")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    parser.add_argument("--profile", type=Path, help="directory for profiles of our server (they slow it)")
    parser.add_argument("--server", type=Path, help="another checkout, whose server is measured")
    parser.add_argument("--output", type=Path, help="[results/fanout.json, quick results/quick/fanout.json]")
    return parser.parse_args(argv)


def workloads(bumps: int, *, quick: bool) -> Iterator[Workload]:
    """Return the workloads: P1, and P2 to P4 (the connecting is P4)."""
    share = 10 if quick else 1
    for protocol in PROTOCOLS:
        yield Workload(f"P1 {protocol}", 1000 // share, 1, protocol, bumps)
    for number, protocol in zip(("P2", "P3"), PROTOCOLS, strict=True):
        yield Workload(f"{number} {protocol}", 300 // share, 2000 // share, protocol, bumps)


def measure(
    workload: Workload, subject: Subject, generator: Path, tls: Path, number: int, profile: Path | None
) -> Measurement:
    """Run one server under one workload."""
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
    """Lay out the medians of all rounds, each workload's servers one above the other."""
    out = Table(title="fan-out: server CPU per push and acknowledgement, time to the last one, connecting")
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
    found = Values()
    for key in dict.fromkeys((m.workload, m.server) for m in measurements):
        mine = [m for m in measurements if (m.workload, m.server) == key]
        found |= {
            name("fanout", *key, "push_us"): statistics.median(m.push_cpu_us for m in mine),
            name("fanout", *key, "connect_s"): statistics.median(m.connect_cpu_seconds for m in mine),
            name("fanout", *key, "peak_mib"): max(m.peak_mib for m in mine),
        }
    return found


def subjects(checkout: Checkout, *, alone: bool) -> Iterator[Subject]:
    """Yield ours, and without `alone` the peers."""
    yield Subject(OURS, checkout.module(SYNTHETIC), checkout.root)
    if not alone:
        yield Subject(PEER, (build("peers/go-control-plane"),))
        yield Subject(BARE, Checkout().module(BARE_MODULE), knows=FLOOR)


def main() -> None:
    """Measure, print, write."""
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
