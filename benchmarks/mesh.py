"""`python -m benchmarks.mesh`: a mesh as it grows, served by the real program to real mTLS streams.

Per number of services: the start from nothing, all sidecars connecting, memory, and what each kind of change
costs, from the manifest that is written to the last ACK. Then the latency of single changes.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.fanout import machine
from benchmarks.mesh_tables import tables
from benchmarks.programs import HERE
from benchmarks.sizes import Bench, Plan, measure, measure_latency

LATENCY_SERVICES: Final = 100
"""P12 is asked for at 200 sidecars: two of each service."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mesh", description=__doc__)
    parser.add_argument("--services", type=int, nargs="+", default=[250, 500, 1000], help="[250 500 1000]")
    parser.add_argument("--repeat", type=int, default=100, help="moves of an endpoint [100]")
    parser.add_argument("--moves", type=int, default=1000, help="moves of the latency's mesh, 0: none [1000]")
    parser.add_argument("--churn", type=float, default=30.0, help="seconds of churn, 0: none [30]")
    parser.add_argument("--quick", action="store_true", help="50 services, few repetitions, to try")
    parser.add_argument(
        "--profile", type=Path, help="folder: where the server's time goes, by kind of change"
    )
    parser.add_argument("--output", type=Path, default=HERE / "results" / "mesh.json")
    told = parser.parse_args(argv)
    if told.quick:
        told.services, told.repeat, told.moves, told.churn = [50], 5, 50, 5.0
    return told


def main() -> None:
    """Measure, print, write."""
    told = arguments()
    console = Console(width=190)
    plan = Plan(told.repeat, told.churn, told.profile)
    small = min(LATENCY_SERVICES, *told.services)
    where = machine()
    if told.profile:
        told.profile.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mesh-") as folder:
        bench = Bench(Path(folder), max(told.services))
        sizes = [measure(bench, services, plan, console.log) for services in told.services]
        found = measure_latency(bench, small, told.moves) if told.moves else None
    for table in tables(sizes, found):
        console.print(table)
    told.output.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "machine": where,
        "sizes": [asdict(each) for each in sizes],
        "latency": asdict(found) if found else None,
    }
    told.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    console.print(f"written to {told.output}")


if __name__ == "__main__":
    main()
