"""`python -m benchmarks`: everything that figures are asked of, one program after the other, and the table.

With `--before CHECKOUT` each program measures the servers of that checkout first, and at once afterwards
those of this one: on the same machine, in the same hour.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.figures.results import place
from benchmarks.processes.programs import PEERS, end_with_sigterm
from tools.process_end import end

PROGRAMS: Final = ("fanout", "storm", "mesh", "istiod")
"""Those with figures, the shortest first."""
PATIENCE: Final = 60.0
"""Seconds that a program may take to end its servers."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout, to be measured beside this one")
    parser.add_argument(
        "--only", nargs="+", choices=PROGRAMS, default=PROGRAMS, metavar="PROGRAM", help=f"{PROGRAMS}"
    )
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that it runs")
    return parser.parse_args(argv)


def commands(told: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Yield what is run, each the words after `python -m`."""
    quick = ("--quick",) if told.quick else ()
    here = place("", None, quick=told.quick).parent
    before = here / "before"
    for program in PROGRAMS:
        if program not in told.only:
            continue
        if told.before is not None:
            output = before / f"{program}.json"
            yield f"benchmarks.{program}", *quick, "--server", str(told.before), "--output", str(output)
        yield f"benchmarks.{program}", *quick
    sides = ("--before", str(before)) if told.before is not None else ()
    yield "benchmarks.table", *sides, "--after", str(here)


def run(words: Sequence[str]) -> int:
    """Run a program of this checkout to its end, or end it with this one; return its exit code."""
    print(f"python -m {' '.join(words)}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=PEERS)
    try:
        return process.wait()
    finally:
        end(process, PATIENCE)


def main() -> None:
    """Run all of it, whatever becomes of one; fail if one did."""
    end_with_sigterm()
    failed = [words for words in commands(arguments()) if run(words)]
    for words in failed:
        print(f"failed: python -m {' '.join(words)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
