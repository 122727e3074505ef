"""On how many examples properties are tried: few in every run, more where somebody looks for faults."""

from typing import Final

from hypothesis import settings

STEADY: Final = 40
"""Examples of a property that says no number, in every run."""
FRESH: Final = 4 * STEADY
"""The same for `make fuzz`."""


def examples(steady: int, fresh: int | None = None) -> int:
    """Return the number of examples of a property: `steady` in every run, `fresh` in `make fuzz`.

    Without `fresh` the fuzzing run tries as many times more as it does of a property that says no number. An
    expensive property has few steady examples and says `fresh`, so that fuzzing is as thorough as ever.
    """
    most = settings().max_examples
    if fresh is not None and most != STEADY:
        return fresh * most // FRESH
    return steady * most // STEADY
