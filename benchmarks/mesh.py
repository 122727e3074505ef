"""Command `python -m benchmarks.mesh`: meshes of growing size, served by the real server over mTLS streams.

Each size is measured at the start, while sidecars connect, and for its memory and each kind of change: from
the written manifest to the last ACK, and until the server rests. Meshes with policies are first, permissive
ones follow. The last parts are the latency of single changes, and a bare server with the same number of
streams.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.figures.goals import ALONE, FULL
from benchmarks.figures.results import machine, place, write
from benchmarks.measurements.floor import Floor, floor
from benchmarks.measurements.mesh_tables import tables, values
from benchmarks.measurements.sizes import Bench, Case, Plan, measure, measure_latency
from benchmarks.processes.programs import BenchmarkError, Checkout, end_with_sigterm

LATENCY: Final = 100
"""Services of the mesh for latency: P12 needs 200 sidecars, two of each service."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mesh", description=__doc__)
    sizes, permissive = [250, 500, 1000, 4000, 10_000], [500, 1000]
    parser.add_argument("--services", type=int, nargs="*", default=sizes, help=f"meshes by policy {sizes}")
    parser.add_argument(
        "--permissive", type=int, nargs="*", default=permissive, help=f"permissive {permissive}"
    )
    parser.add_argument(
        "--connected",
        type=int,
        default=200,
        help="connected sidecars in meshes of more than 1000 services [200]",
    )
    parser.add_argument(
        "--unconnected", action="store_true", help="permissive meshes without connected sidecars"
    )
    parser.add_argument(
        "--repeat", type=int, default=18, help="moves of an endpoint; other changes a third as often [18]"
    )
    parser.add_argument("--moves", type=int, default=200, help="moves for the latency, 0 to skip [200]")
    parser.add_argument("--churn", type=float, default=10.0, help="seconds of churn, 0 to skip [10]")
    parser.add_argument("--no-floor", action="store_true", help="skip the bare server")
    parser.add_argument("--quick", action="store_true", help="use 50 services and few repetitions")
    parser.add_argument("--server", type=Path, help="measure the server of another checkout")
    parser.add_argument(
        "--profile", type=Path, help="folder: where the server's time goes, by kind of change"
    )
    parser.add_argument("--output", type=Path, help="[results/mesh.json, quick results/quick/mesh.json]")
    options = parser.parse_args(argv)
    if options.repeat < 2:
        parser.error(
            "--repeat must be 2 or more, because one repetition would make the same change at each stage"
        )
    if options.quick:
        options.services, options.permissive = options.services and [50], options.permissive and [50]
        options.repeat, options.moves, options.churn = 4, min(options.moves, 20), min(options.churn, 3.0)
    return options


def cases(
    services: Sequence[int], permissive: Sequence[int], connected: int, *, unconnected: bool = False
) -> Iterator[Case]:
    """Yield the meshes with policies, then the permissive ones.

    The largest mesh with policies whose sidecars all connect has every kind of change. Only the largest
    permissive mesh has connected sidecars (none with `unconnected`), because a second size would show the
    same.
    """
    crowded = 0 if unconnected else max(permissive, default=0)
    whole = max((size for size in services if size <= FULL), default=0)
    for size in services:
        yield Case(size, (0, ALONE, 2 * size if size <= FULL else connected), whole=size == whole)
    for size in permissive:
        yield Case(size, (0, size, 2 * size) if size == crowded else (0,), permissive=True)


def main() -> None:
    """Measure, print the tables, and write the results."""
    end_with_sigterm()
    options = arguments()
    console = Console(width=220)
    checkout = Checkout.at(options.server) if options.server else Checkout()
    plan = Plan(options.repeat, options.churn, options.profile, checkout)
    wanted = list(
        cases(options.services, options.permissive, options.connected, unconnected=options.unconnected)
    )
    small = Case(min([LATENCY, *options.services]), (2 * min([LATENCY, *options.services]),))
    where = machine()
    if options.profile:
        options.profile.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mesh-") as folder:
        # One set of certificates for all meshes, because issuing thousands takes time.
        bench = Bench(Path(folder), (name for case in (*wanted, small) for name in case.names))
        sizes, failed = [], []
        for case in wanted:
            try:
                sizes.append(measure(bench, case, plan, console.log))
            except BenchmarkError as error:  # the results of the other meshes are still printed
                console.log(f"{case}: {error}", style="red")
                failed.append(f"{case}: {error}")
        latency = measure_latency(bench, small, plan, options.moves) if options.moves else None
        whole = next((case for case in wanted if case.whole), None)
        bare: Floor | None = None
        if whole is not None and not options.no_floor:
            bare = floor(Path(folder), whole.services, max(whole.stages))
            console.log(
                f"a bare server, {bare.streams} sidecars: {bare.cpu:.2f} s of CPU, {bare.memory:.0f} MiB"
            )
    for table in tables(sizes, latency, bare):
        console.print(table)
    details = {
        "sizes": [asdict(size) for size in sizes],
        "latency": asdict(latency) if latency else None,
        "floor": asdict(bare) if bare else None,
        "failed": failed,
    }
    output = place("mesh", options.output, quick=options.quick)
    write(output, where, values(sizes, latency, bare), **details)
    console.print(f"written to {output}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
