"""Command `python -m benchmarks.table`: table of the goals P1 to P15 over all programs, before and after.

Each side is a folder of results, or several files. Results of a peer for both sides can be given once.
Without arguments the results in `benchmarks/results` are used.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures.goals import Figure, figures
from benchmarks.figures.results import RESULTS, read


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=__doc__)
    parser.add_argument("--before", type=Path, nargs="+", default=[], help="results before a change")
    parser.add_argument(
        "--after", type=Path, nargs="+", default=[RESULTS], help="results [benchmarks/results]"
    )
    parser.add_argument("--peers", type=Path, nargs="+", default=[], help="results for both sides")
    return parser.parse_args(argv)


def rows(before: Iterable[Figure], after: Iterable[Figure]) -> list[tuple[str, ...]]:
    """Return a row for each goal with values on either side, in the order of their numbers."""
    sides = [{(figure.number, figure.what): figure for figure in side} for side in (before, after)]
    every = sorted(dict.fromkeys([*sides[0], *sides[1]]), key=lambda key: int(key[0].removeprefix("P")))
    return [_row(*(side.get(key) for side in sides)) for key in every]


def _row(before: Figure | None, after: Figure | None) -> tuple[str, ...]:
    shown = after or before
    assert shown is not None  # noqa: S101 - the key is one side's
    measured = (before.measured if before else "", _verdict(before))
    return (
        shown.number,
        shown.what,
        shown.wanted,
        *measured,
        after.measured if after else "",
        shown.peer,
        _verdict(after),
    )


def _verdict(figure: Figure | None) -> str:
    return "" if figure is None else "yes" if figure.reached else "no"


def table(result: Iterable[Sequence[str]], *, both: bool) -> Table:
    """Return the rows as a table; with only one side, without the columns of the other."""
    out = Table(title="figures to reach")
    headings = ("", "what", "wanted", "before", "reached", "measured", "peer, same work", "reached")
    shown = [number for number in range(len(headings)) if both or number not in (3, 4)]
    for number in shown:
        out.add_column(headings[number], no_wrap=number == 0)
    for row in result:
        out.add_row(*(row[number] for number in shown))
    return out


def main() -> None:
    """Read the results of all benchmarks, compare them with the goals, and print the table."""
    options = arguments()
    before = list(figures(read([*options.peers, *options.before]))) if options.before else []
    after = list(figures(read([*options.peers, *options.after])))
    Console(width=190 if options.before else 160).print(table(rows(before, after), both=bool(options.before)))


if __name__ == "__main__":
    main()
