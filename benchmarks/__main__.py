"""Command `python -m benchmarks`: run all programs with goals one after the other, and print the table.

With `--before CHECKOUT` each program first measures the servers of another checkout and then those of this
one, so that both run on the same machine at about the same time.
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
"""Programs with goals, the shortest first."""
PATIENCE: Final = 60.0
"""Maximum seconds until an interrupted program has stopped its servers."""


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--before", type=Path, help="measure the servers of another checkout before those of this one"
    )
    parser.add_argument(
        "--only", nargs="+", choices=PROGRAMS, default=PROGRAMS, metavar="PROGRAM", help=f"{PROGRAMS}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="use a small load, to see whether the programs run"
    )
    return parser.parse_args(argv)


def commands(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Yield the commands to run, each as the words after `python -m`."""
    quick = ("--quick",) if options.quick else ()
    here = place("", None, quick=options.quick).parent
    before = here / "before"
    for program in PROGRAMS:
        if program not in options.only:
            continue
        if options.before is not None:
            output = before / f"{program}.json"
            yield f"benchmarks.{program}", *quick, "--server", str(options.before), "--output", str(output)
        yield f"benchmarks.{program}", *quick
    sides = ("--before", str(before)) if options.before is not None else ()
    yield "benchmarks.table", *sides, "--after", str(here)


def run(words: Sequence[str]) -> int:
    """Run a program of this checkout, and stop it if this program ends first; return its exit status."""
    print(f"python -m {' '.join(words)}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=PEERS)
    try:
        return process.wait()
    finally:
        # Also after Ctrl-C, because servers must not outlive their benchmark.
        end(process, PATIENCE)


def main() -> None:
    """Run all benchmark programs even if one fails; exit with status 1 if any failed."""
    end_with_sigterm()
    failed = [words for words in commands(arguments()) if run(words)]
    for words in failed:
        print(f"failed: python -m {' '.join(words)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
