"""The number of examples of properties: few in every run, more in `make fuzz`."""

from typing import Final

from hypothesis import settings

STEADY: Final = 8
"""Examples of a property that says no number, in every run."""
MORE: Final = 4
"""How many times as many a property that says a number has in `make fuzz`."""
FRESH: Final = 160
"""Those of a property that says no number, in `make fuzz`."""


def examples(steady: int, fresh: int | None = None) -> int:
    """Return the number of examples of a property: `steady` in every run, `fresh` in `make fuzz`.

    By default, `make fuzz` tries MORE times as many. An expensive property has few steady examples, and gives
    `fresh` so that fuzzing is as thorough as before.
    """
    most = settings().max_examples
    if most == STEADY:
        return steady
    return max(1, (steady * MORE if fresh is None else fresh) * most // FRESH)
