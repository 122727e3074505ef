"""On how many examples properties are tried: few in every run, more where somebody looks for faults."""

from typing import Final

from hypothesis import settings

STEADY: Final = 40
"""Examples of a property that says no number, in every run."""
FRESH: Final = 4 * STEADY
"""The same for `make fuzz`."""


def examples(steady: int) -> int:
    """Return on how many examples a property is tried that is tried on so many in every run."""
    return steady * settings().max_examples // STEADY
