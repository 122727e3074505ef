"""Command `python -m benchmarks.simulation`: many servers of one mesh, with real code in simulated time.

Thirty servers serve 30,000 proxies of 10,000 services: proxies join, are rolled out and move, and the store
is away. The ledger, its records, presence, leadership, balance and streams are the real ones; time, network,
proxies and the view of the mesh are simulated. Resources are synthetic, so a real mesh with many policies
sends more bytes. All counts are the same on each machine for one seed.

The memory of one server is a sum: the records are measured here, the rest is from `benchmarks.memory`.
"""

import argparse
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import structlog
from rich.console import Console
from rich.table import Table

from benchmarks.figures.results import Values, machine, name, place, write
from benchmarks.processes.programs import end_with_sigterm
from benchmarks.simulation.clock import run
from benchmarks.simulation.fleet import Fleet, Size
from benchmarks.simulation.record_cost import RecordCost, record_cost
from benchmarks.simulation.scenes import Figures, play

SERVICE_BYTES: Final = 31_000
GROUP_BYTES: Final = 55_000
STREAM_BYTES: Final = 129_000
"""Memory of a service, of a group whose proxies are connected, and of a stream (`benchmarks.memory`)."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("--servers", type=int, default=30, help="servers [30]")
    parser.add_argument("--services", type=int, default=10_000, help="services, with 3 proxies each [10000]")
    parser.add_argument("--seed", type=int, default=1, help="seed of all choices [1]")
    parser.add_argument("--quick", action="store_true", help="use 3 servers and 100 services")
    parser.add_argument("--output", type=Path, help="[results/simulation.json, quick results/quick/...]")
    options = parser.parse_args(argv)
    if options.quick:
        options.servers, options.services = 3, 100
    return options


async def simulate(size: Size, seed: int) -> tuple[tuple[Figures, ...], RecordCost]:
    """Measure a record, and play all scenes."""
    # Before the fleet, because memory that Python has freed would hide the growth by the records.
    cost = await record_cost()
    return await play(Fleet(size, seed)), cost


def server_bytes(size: Size, cost: RecordCost) -> float:
    """Return the memory of one server in bytes, if the proxies are spread evenly."""
    streams = size.proxies / size.servers
    return (
        size.services * SERVICE_BYTES
        # A server has a group only for services of its own proxies, for example for 1000 of 10,000.
        + min(size.services, streams) * GROUP_BYTES
        + streams * STREAM_BYTES
        + size.proxies * cost.bytes
    )


def values(size: Size, figures: Sequence[Figures], cost: RecordCost) -> Iterator[tuple[str, float]]:
    """Yield each figure with its name."""
    for scene in figures:
        for group, counts in (("proxies", scene.counts), ("store", scene.store), ("busiest", scene.busiest)):
            for word, count in counts.items():
                yield name("simulation", scene.scene, group, word), float(count)
        yield name("simulation", scene.scene, "fullest"), scene.fullest
        yield name("simulation", scene.scene, "told-last"), scene.told[2]
    yield name("simulation", "record_bytes"), cost.bytes
    yield name("simulation", "record_cpu_us"), cost.cpu_us
    yield name("simulation", "server_mib"), server_bytes(size, cost) / 2**20


def table(size: Size, figures: Sequence[Figures]) -> Table:
    """Return the figures of all scenes as a table."""
    shown = Table(title=f"{size.servers} servers, {size.services:,} services, {size.proxies:,} proxies")
    for heading in ("", "s", "writes", "in a second", "heard by each", "renewals/s", "pushes", "MB sent"):
        shown.add_column(heading)
    for heading in ("moved", "refused", "fullest", "told: half, 99 %, last"):
        shown.add_column(heading)
    for scene in figures:
        counts, store = scene.counts, scene.store
        pushes, sent = (
            sum(count for word, count in counts.items() if word.endswith(end))
            for end in (" pushes", " bytes")
        )
        shown.add_row(
            scene.scene,
            f"{scene.seconds:.0f}",
            f"{store.get('write', 0):,}",
            f"{scene.busiest.get('write', 0):,}",
            f"{(store.get('event', 0) + store.get('listed', 0)) / size.servers:,.0f}",
            f"{store.get('renewal', 0) / scene.seconds:.1f}",
            f"{pushes:,}",
            f"{sent / 1e6:,.2f}",
            f"{counts.get('moved', 0):,}",
            f"{counts.get('refused', 0):,}",
            f"{scene.fullest:.2f}",
            ", ".join(f"{seconds:.1f}" for seconds in scene.told),
        )
    return shown


def main() -> None:
    """Simulate, print the table, and write the results."""
    end_with_sigterm()
    options = arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    console, where = Console(width=160), machine()
    size = Size(options.servers, options.services)
    began = time.process_time()
    figures, cost = run(simulate(size, options.seed))
    console.print(table(size, figures))
    console.print(
        f"a record at each server: {cost.bytes:,.0f} bytes, {cost.cpu_us:.0f} µs;"
        f" memory of a server: {server_bytes(size, cost) / 2**20:,.0f} MiB;"
        f" CPU of this program: {time.process_time() - began:.0f} s"
    )
    output = place("simulation", options.output, quick=options.quick)
    result: Values = dict(values(size, figures, cost))
    write(output, where, result, scenes=[asdict(scene) for scene in figures], cost=asdict(cost))
    console.print(f"written to {output}")


if __name__ == "__main__":
    main()
