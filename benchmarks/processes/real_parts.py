"""Real programs for a benchmark, built before it begins."""

from collections.abc import Callable, Sequence

from benchmarks.processes.programs import BenchmarkError
from tools.real_parts.building import PartError, build, has_go, is_built
from tools.real_parts.parts import Part


def are_had(parts: Sequence[Part], print_line: Callable[[str], None]) -> bool:
    """Build the missing programs; return False, and report this, if Go is missing. Raises BenchmarkError."""
    if not has_go():
        missing = [part.name for part in parts if not is_built(part)]
        of = ", ".join((*missing, "sidecars"))
        print_line(f"skipped: this benchmark needs Go (https://go.dev), for {of}")
        return False
    try:
        for part in parts:
            build(part, print_line)
    except PartError as error:
        raise BenchmarkError(str(error)) from error
    return True
