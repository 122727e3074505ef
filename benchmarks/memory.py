"""`python -m benchmarks.memory`: what the server's memory is made of, per service and per sidecar.

The real program serves meshes of several sizes. It counts its own objects (`benchmarks.profiles.census`) when
it serves without a connected sidecar, again with one sidecar of each service connected over mTLS, and with
two. The cost of a service is the memory that one more service adds without a connected sidecar. The cost of a
first sidecar includes the resources of its group; a second sidecar shares them.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.figures.results import RESULTS, Values, machine, write
from benchmarks.measurements.sizes import Bench, Case, Plan, connect
from benchmarks.processes.plane import ControlPlane
from benchmarks.processes.programs import Checkout, end_with_sigterm
from benchmarks.processes.quiet import settled
from benchmarks.processes.usage import Memory, memory

SHOWN: Final = 20
"""Number of rows in a table; those with the most bytes."""
ADDED: Final = ("service, nobody connected", "its first sidecar", "its second sidecar")
"""Names of the increments, in the order in which a mesh is measured."""

Counts = Mapping[str, tuple[float, float]]
"""Bytes and objects, by owner or by type: of the whole process, or of an increment."""


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Memory of the process, and the bytes and objects of each owner and of each type."""

    memory: Memory
    owners: Counts
    types: Counts

    @property
    def whole(self) -> float:
        """Bytes of all Python objects of the server."""
        return sum(size for size, _ in self.owners.values())

    @property
    def objects(self) -> float:
        """Number of all Python objects of the server."""
        return sum(count for _, count in self.owners.values())


@dataclass(frozen=True, slots=True)
class MemoryByStage:
    """Results of one size of mesh: without sidecars, with one sidecar of each service, and with two."""

    services: int
    stages: tuple[MemoryUsage, ...]


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--services", type=int, nargs="+", default=[250, 500], help="[250 500]")
    parser.add_argument("--server", type=Path, help="measure the server of another checkout")
    parser.add_argument("--output", type=Path, default=RESULTS / "memory.json")
    return parser.parse_args(argv)


def measure(bench: Bench, case: Case, folder: Path, checkout: Checkout) -> MemoryByStage:
    """Serve a mesh of one size, and count the server's Python objects at each stage."""
    folder.mkdir()
    with bench.serving(case, Plan(1, 0, folder, checkout)) as (served, plane, _):
        stages = [_memory_usage(plane, folder / "1.json")]
        for number, count in enumerate(case.stages, 2):
            connect(served, count)
            stages.append(_memory_usage(plane, folder / f"{number}.json"))
        return MemoryByStage(case.services, tuple(stages))


def _memory_usage(plane: ControlPlane, written: Path) -> MemoryUsage:
    # An idle server still looks for problems and trims its heaps.
    settled(plane.cpu)
    result = memory(plane.pid)  # before the census, which needs memory itself
    counted = plane.census(written)
    return MemoryUsage(
        result,
        _summed((owner, item) for owner, types in counted.items() for item in types.values()),
        _summed(item for types in counted.values() for item in types.items()),
    )


def _summed(counts: Iterable[tuple[str, tuple[float, float]]]) -> Counts:
    sums: dict[str, tuple[float, float]] = {}
    for name, (size, count) in counts:
        before = sums.get(name, (0, 0))
        sums[name] = (before[0] + size, before[1] + count)
    return sums


def slopes(points: Sequence[tuple[int, Counts]]) -> Counts:
    """Return the bytes and objects of each name per unit, from the smallest to the largest point.

    The part that is independent of the size is not included.
    """
    (few, small), (many, large) = points[0], points[-1]
    result: dict[str, tuple[float, float]] = {}
    for name in sorted({*small, *large}):
        (size, count), (larger, more) = small.get(name, (0, 0)), large.get(name, (0, 0))
        result[name] = ((larger - size) / (many - few), (more - count) / (many - few))
    return result


def added(before: Counts, after: Counts) -> Counts:
    """Return the added bytes and objects of each name: `after` minus `before`."""
    names = sorted({*before, *after})
    pairs = ((name, before.get(name, (0, 0)), after.get(name, (0, 0))) for name in names)
    return {name: (larger - size, more - count) for name, (size, count), (larger, more) in pairs}


def by_sort(result: Counts) -> Counts:
    """Return the sums of bytes and objects by sort of owner, the first word of the owner's name."""
    return _summed((name.partition(" ")[0], item) for name, item in result.items())


def tables(sizes: Sequence[MemoryByStage]) -> Iterator[Table]:
    """Yield the tables: sums by size, then each increment in all, by owner and by type."""
    yield sums(sizes)
    if len(sizes) > 1:
        yield memory_per_item(sizes)
        for stage, title in enumerate(ADDED):
            owners = slopes(
                [(size.services, _added(size, stage, lambda held: held.owners)) for size in sizes]
            )
            types = slopes([(size.services, _added(size, stage, lambda held: held.types)) for size in sizes])
            yield histogram(f"{title}: by sort of owner", by_sort(owners))
            yield histogram(f"{title}: by owner", owners)
            yield histogram(f"{title}: by type", types)


def _added(sized: MemoryByStage, stage: int, counts: Callable[[MemoryUsage], Counts]) -> Counts:
    before = counts(sized.stages[stage - 1]) if stage else {}
    return added(before, counts(sized.stages[stage]))


def sums(sizes: Sequence[MemoryByStage]) -> Table:
    """Return a table with resident memory and Python objects for each size of mesh and each stage."""
    out = Table(title="memory by size")
    for heading in ("services", "connected", "RSS MiB", "Python objects MiB", "objects"):
        out.add_column(heading, justify="right")
    for size in sizes:
        for stage, held in enumerate(size.stages):
            resident, whole = f"{held.memory.resident:.0f}", f"{held.whole / 2**20:.1f}"
            out.add_row(
                f"{size.services}", f"{stage * size.services}", resident, whole, f"{held.objects:.0f}"
            )
    return out


def memory_per_item(sizes: Sequence[MemoryByStage]) -> Table:
    """Return a table with the memory that one more service or sidecar takes, and its Python objects."""
    out = Table(title="one more takes")
    for heading in ("", "RSS kB", "Python objects kB", "objects"):
        out.add_column(heading, justify="right" if heading else "left")
    more = sizes[-1].services - sizes[0].services
    before = (0.0, 0.0, 0.0)
    for title, *pair in zip(ADDED, sizes[0].stages, sizes[-1].stages, strict=True):
        grown = _grown(*pair)
        resident, size, count = ((now - then) / more for now, then in zip(grown, before, strict=True))
        out.add_row(title, f"{resident / 1000:.1f}", f"{size / 1000:.1f}", f"{count:.0f}")
        before = grown
    out.add_section()
    resident, size, count = (number / more for number in before)
    out.add_row("all of them", f"{resident / 1000:.1f}", f"{size / 1000:.1f}", f"{count:.0f}")
    return out


def _grown(before: MemoryUsage, after: MemoryUsage) -> tuple[float, float, float]:
    resident = (after.memory.resident - before.memory.resident) * 2**20
    return resident, after.whole - before.whole, after.objects - before.objects


def histogram(title: str, result: Counts) -> Table:
    """Return a table of the owners (or types) with the most bytes."""
    out = Table(title=title)
    out.add_column("", no_wrap=True)
    for heading in ("bytes", "%", "objects"):
        out.add_column(heading, justify="right")
    whole = sum(size for size, _ in result.values())
    for name, (size, count) in sorted(result.items(), key=lambda item: -item[1][0])[:SHOWN]:
        out.add_row(name, f"{size:.0f}", f"{100 * size / whole:.1f}", f"{count:.1f}")
    out.add_section()
    out.add_row("all", f"{whole:.0f}", "100", f"{sum(count for _, count in result.values()):.1f}")
    return out


def main() -> None:
    """Measure, print the tables, and write the results."""
    end_with_sigterm()
    options = arguments()
    console = Console(width=140)
    where = machine()
    checkout = Checkout.at(options.server) if options.server else Checkout()
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        # Sorted, because increments are computed from the smallest to the largest mesh.
        cases = [Case(service, (service, 2 * service), in_turns=True) for service in sorted(options.services)]
        bench = Bench(Path(folder), (name for case in cases for name in case.names))
        sizes = [measure(bench, each, Path(folder) / f"census-{each.services}", checkout) for each in cases]
    for table in tables(sizes):
        console.print(table)
    write(options.output, where, Values(), sizes=[asdict(size) for size in sizes])
    console.print(f"written to {options.output}")


if __name__ == "__main__":
    main()
