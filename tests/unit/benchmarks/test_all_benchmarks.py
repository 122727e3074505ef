"""Tests of the program that runs all benchmarks, before and after in turn, and prints their table."""

from benchmarks.__main__ import PROGRAMS, arguments, commands
from benchmarks.figures.results import RESULTS


def test_each_benchmark_is_run_and_then_the_table() -> None:
    """The table reads the files that the benchmarks write by default."""
    result = list(commands(arguments([])))
    table = ("benchmarks.table", "--after", str(RESULTS))
    assert result == [*((f"benchmarks.{program}",) for program in PROGRAMS), table]


def test_before_and_after_are_measured_in_turn() -> None:
    """The order is by program, not by checkout. Quick runs have their own folder."""
    result = list(commands(arguments(["--before", "old", "--only", "mesh", "fanout", "--quick"])))
    quick, before = RESULTS / "quick", RESULTS / "quick" / "before"
    assert result == [
        *(
            words
            for each in ("fanout", "mesh")
            for words in (
                (f"benchmarks.{each}", "--quick", "--server", "old", "--output", f"{before}/{each}.json"),
                (f"benchmarks.{each}", "--quick"),
            )
        ),
        ("benchmarks.table", "--before", str(before), "--after", str(quick)),
    ]
