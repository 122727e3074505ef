"""All benchmarks in one go: before and after in turn, and the table of both."""

from benchmarks.__main__ import PROGRAMS, arguments, commands
from benchmarks.figures.results import RESULTS


def test_each_program_is_run_and_then_the_table() -> None:
    """Each writes where it does by itself, and the table reads that."""
    result = list(commands(arguments([])))
    table = ("benchmarks.table", "--after", str(RESULTS))
    assert result == [*((f"benchmarks.{program}",) for program in PROGRAMS), table]


def test_before_and_after_are_measured_in_turn() -> None:
    """Program by program, not one checkout after the other; quick ones are by themselves."""
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
