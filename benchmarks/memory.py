"""`python -m benchmarks.memory`: what the server's memory is made of, by who holds it, and per service.

The real program serves meshes of several sizes. It counts its own objects (`benchmarks.census`) when it
serves and nobody is connected, and again when every sidecar is: two of each service, over mTLS.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.plane import ControlPlane
from benchmarks.processes import Memory, memory
from benchmarks.programs import end_with_sigterm
from benchmarks.quiet import settled
from benchmarks.results import RESULTS, Values, machine, write
from benchmarks.sizes import Bench, Case, Plan, connect

SHOWN: Final = 30
"""Rows of a table; those with the most bytes."""

Slopes = Mapping[str, tuple[float, float]]
"""Bytes and objects for one service more, by owner."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the process has from the system, and the bytes and objects of each owner."""

    memory: Memory
    owners: Mapping[str, tuple[int, int]]
    types: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of each owner's, the types with the most bytes."""

    @property
    def whole(self) -> int:
        """The bytes of all Python objects."""
        return sum(size for size, _ in self.owners.values())


@dataclass(frozen=True, slots=True)
class Sized:
    """One size of mesh, with nobody connected, and with all."""

    services: int
    nobody: Held
    everybody: Held


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--services", type=int, nargs="+", default=[250, 500], help="[250 500]")
    parser.add_argument("--output", type=Path, default=RESULTS / "memory.json")
    return parser.parse_args(argv)


def measure(bench: Bench, case: Case, folder: Path) -> Sized:
    """Serve one size, and count."""
    folder.mkdir()
    with bench.serving(case, Plan(1, 0, folder)) as (served, plane, _):
        nobody = _held(plane, folder / "1.json")
        connect(served, max(case.stages))
        return Sized(case.services, nobody, _held(plane, folder / "2.json"))


def _held(plane: ControlPlane, written: Path) -> Held:
    settled(plane.cpu)  # it looks for problems, and trims its heaps, when nothing else is to be done
    found = memory(plane.pid)  # before the count, which takes some itself
    counted = plane.census(written)
    owners = {owner: (each["bytes"], each["objects"]) for owner, each in counted.items()}
    return Held(found, owners, {owner: each["types"] for owner, each in counted.items()})


def per_service(sizes: Sequence[tuple[int, Held]]) -> Slopes:
    """Return the bytes and objects that each owner holds for one service more.

    The slope from the smallest mesh to the largest: what is there for no service at all is not in it.
    """
    (few, small), (many, large) = sizes[0], sizes[-1]
    found: dict[str, tuple[float, float]] = {}
    for name in sorted({*small.owners, *large.owners}):
        (size, count), (larger, more) = small.owners.get(name, (0, 0)), large.owners.get(name, (0, 0))
        found[name] = ((larger - size) / (many - few), (more - count) / (many - few))
    return found


def by_sort(found: Slopes) -> Slopes:
    """Return the same by sort of owner: the first word of its name."""
    sums: dict[str, tuple[float, float]] = {}
    for name, (size, count) in found.items():
        sort = name.partition(" ")[0]
        before = sums.get(sort, (0.0, 0.0))
        sums[sort] = (before[0] + size, before[1] + count)
    return sums


def tables(sizes: Sequence[Sized]) -> Iterator[Table]:
    """Yield the sums by size, and the owners per service."""
    yield sums(sizes)
    if len(sizes) > 1:
        for title, held in (
            ("nobody connected", [(each.services, each.nobody) for each in sizes]),
            ("all connected", [(each.services, each.everybody) for each in sizes]),
        ):
            found = per_service(held)
            yield histogram(f"per service, {title}, by sort", by_sort(found))
            yield histogram(f"per service, {title}", found)


def sums(sizes: Sequence[Sized]) -> Table:
    """Lay out what each size holds in all."""
    out = Table(title="memory by size")
    for heading in ("services", "connected", "RSS MiB", "Python objects MiB", "objects"):
        out.add_column(heading, justify="right")
    for each in sizes:
        for connected, held in ((0, each.nobody), (2 * each.services, each.everybody)):
            count = sum(count for _, count in held.owners.values())
            resident, whole = f"{held.memory.resident:.0f}", f"{held.whole / 2**20:.1f}"
            out.add_row(f"{each.services}", f"{connected}", resident, whole, f"{count}")
    return out


def histogram(title: str, found: Slopes) -> Table:
    """Lay out owners, those with the most bytes first."""
    out = Table(title=title)
    out.add_column("owner", no_wrap=True)
    for heading in ("bytes", "%", "objects"):
        out.add_column(heading, justify="right")
    whole = sum(size for size, _ in found.values())
    for name, (size, count) in sorted(found.items(), key=lambda each: -each[1][0])[:SHOWN]:
        out.add_row(name, f"{size:.0f}", f"{100 * size / whole:.1f}", f"{count:.1f}")
    out.add_section()
    out.add_row("all", f"{whole:.0f}", "100", f"{sum(count for _, count in found.values()):.1f}")
    return out


def main() -> None:
    """Measure, print, write."""
    end_with_sigterm()
    told = arguments()
    console = Console(width=140)
    where = machine()
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        cases = [Case(each, (2 * each,)) for each in sorted(told.services)]
        bench = Bench(Path(folder), (name for each in cases for name in each.names))
        sizes = [measure(bench, each, Path(folder) / f"census-{each.services}") for each in cases]
    for table in tables(sizes):
        console.print(table)
    write(told.output, where, Values(), sizes=[asdict(each) for each in sizes])
    console.print(f"written to {told.output}")


if __name__ == "__main__":
    main()
