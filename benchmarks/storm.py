"""Command `python -m benchmarks.storm`: all proxies connect at once, and equal snapshots are published.

Proxies connect at the same time to a control plane that has just started: first without resources, then after
a restart with the resources they hold. Each gets clusters, endpoints, a listener and routes. Between the two
an equal snapshot is published, which must cause no response. In the last case one proxy reads very slowly.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.fanout import PROTOCOLS, SYNTHETIC
from benchmarks.figures.results import Values, machine, name, place, write
from benchmarks.processes.credentials import issue
from benchmarks.processes.programs import (
    Checkout,
    Load,
    LoadGenerator,
    Server,
    build,
    end_with_sigterm,
    loading,
    serving,
)
from tools.ports import free_port

SERVICES: Final = 300
ENDPOINTS: Final = 5
QUIET: Final = 3000
"""Milliseconds in which no response may arrive."""
SLOW_PATIENCE: Final = 25_000
"""Milliseconds to watch a proxy that reads very slowly; longer than the server's limit for a write."""


@dataclass(frozen=True, slots=True)
class Storm:
    """Results of one case: connecting with the server's CPU time, later responses, and remaining streams."""

    protocol: str
    case: str
    cpu_seconds: float
    peak_mib: float
    connect: Load
    after: Load
    streams: int


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storm", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use a tenth of the proxies")
    parser.add_argument("--proxies", type=int, default=2000, help="proxies that connect at once [2000]")
    parser.add_argument("--server", type=Path, help="measure the server of another checkout")
    parser.add_argument("--output", type=Path, help="[results/storm.json, quick results/quick/storm.json]")
    return parser.parse_args(argv)


def _command(checkout: Checkout) -> tuple[str, ...]:
    """Return the command that starts the server with its default limit on new streams."""
    sizes = ("--services", str(SERVICES), "--endpoints", str(ENDPOINTS))
    return (*checkout.module(SYNTHETIC), *sizes, "--types", "mesh", "--default-admission")


def connect(protocol: str, case: str, server: Server, load: LoadGenerator, idle: int) -> Storm:
    """Connect all proxies, then publish an equal snapshot and wait."""
    before = server.cpu_seconds()
    connected = load.do("connect")
    time.sleep(0.5)
    spent = server.cpu_seconds() - before
    # Responses after the last configuration still belong to connecting, for example to routes held already.
    late = load.do("idle 1500")
    server.get("/again")
    after = load.do(f"idle {idle}")
    return Storm(
        protocol, case, spent, server.memory_mib()[1], _with(connected, late), after, server.streams()
    )


def storms(protocol: str, proxies: int, generator: Path, tls: Path, checkout: Checkout) -> list[Storm]:
    """Run the three cases (first start, restart, one slow reader) with one variant of the protocol."""
    options = ("-protocol", protocol, "-types", "mesh", "-names", str(SERVICES), "-parallel", "0")
    fleet = (*options, "-proxies", str(proxies))
    # The restarted server has the same ports, because the load generator keeps its address.
    ports = free_port("127.0.0.1"), free_port("127.0.0.1")
    command, root = _command(checkout), checkout.root
    result = []
    with serving(command, tls, ports, root) as server, loading(generator, server, tls, *fleet) as load:
        result.append(connect(protocol, "first start", server, load, QUIET))
        # Killed and not stopped, so that the proxies see the end of a crash.
        server.process.kill()
        server.process.wait()
        load.do("disconnect")
        with serving(command, tls, ports, root) as restarted:
            result.append(connect(protocol, "restart", restarted, load, QUIET))
    slow = (*fleet, "-slow", "1")
    with serving(command, tls, root=root) as server, loading(generator, server, tls, *slow) as load:
        result.append(connect(protocol, "one slow reader", server, load, SLOW_PATIENCE))
    return result


def table(storms: Sequence[Storm]) -> Table:
    """Return a table of the results of all cases."""
    out = Table(title="storm: all proxies connect at once; then an equal snapshot is published")
    for heading in ("protocol", "case"):
        out.add_column(heading)
    for heading in (
        "last configured s",
        "p50 s",
        "CPU s",
        "peak MiB",
        "MB",
        "CDS",
        "EDS",
        "LDS",
        "RDS",
        "refused",
        "streams",
        "responses after equal snapshot",
    ):
        out.add_column(heading, justify="right")
    for storm in storms:
        out.add_row(
            storm.protocol,
            storm.case,
            f"{storm.connect.seconds:.2f}",
            f"{storm.connect.each_ack_ms.p50 / 1e3:.2f}",
            f"{storm.cpu_seconds:.2f}",
            f"{storm.peak_mib:.0f}",
            f"{storm.connect.bytes / 1e6:.1f}",
            *(str(_received(storm.connect, kind)) for kind in _KINDS),
            str(storm.connect.refused),
            str(storm.streams),
            str(storm.after.responses),
        )
    return out


_KINDS: Final = ("Cluster", "ClusterLoadAssignment", "Listener", "RouteConfiguration")


def _received(load: Load, kind: str) -> int:
    return sum(count for name, count in load.resources.items() if name.endswith(f".{kind}"))


def _with(connected: Load, late: Load) -> Load:
    kinds = sorted(connected.resources.keys() | late.resources.keys())
    return Load(
        connected.proxies,
        connected.rounds,
        connected.seconds,
        connected.last_ack_ms,
        connected.each_ack_ms,
        connected.bytes + late.bytes,
        connected.responses + late.responses,
        {kind: connected.resources.get(kind, 0) + late.resources.get(kind, 0) for kind in kinds},
        connected.lost + late.lost,
        connected.losses + late.losses,
        connected.slow_settled + late.slow_settled,
        connected.refused + late.refused,
    )


def values(storms: Sequence[Storm]) -> Values:
    """Return the results of all cases as values by name."""
    result = Values()
    for storm in storms:
        held = ("Cluster", "Listener", "RouteConfiguration")
        fields = {
            "configured_s": storm.connect.seconds,
            "cpu_s": storm.cpu_seconds,
            "peak_mib": storm.peak_mib,
            "refused": storm.connect.refused,
            "responses_after": storm.after.responses,
            "sent_again": sum(_received(storm.connect, kind) for kind in held),
        }
        result |= {name("storm", storm.protocol, storm.case, key): value for key, value in fields.items()}
    return result


def main() -> None:
    """Measure, print the table, and write the results."""
    end_with_sigterm()
    options = arguments()
    console = Console(width=150)
    generator = build("loadgen")
    checkout = Checkout.at(options.server) if options.server else Checkout()
    proxies = options.proxies // (10 if options.quick else 1)
    where = machine()
    result: list[Storm] = []
    with tempfile.TemporaryDirectory(prefix="storm-") as directory:
        tls = Path(directory)
        issue(tls)
        for protocol in PROTOCOLS:
            result += storms(protocol, proxies, generator, tls, checkout)
    console.print(table(result))
    for storm in result:
        if storm.case == "one slow reader":
            ended = "was ended" if storm.streams == storm.connect.proxies - 1 else "still has its stream"
            console.print(f"{storm.protocol}: the slow reader {ended}")
        for loss in storm.connect.losses + storm.after.losses:
            console.print(f"{storm.protocol}, {storm.case}: {loss}")
    output = place("storm", options.output, quick=options.quick)
    write(output, where, values(result), storms=[asdict(storm) for storm in result])
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
