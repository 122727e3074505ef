"""Plan of the end of a server's streams: one after another, evenly over a time. Pure."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlannedEnd:
    """The end of one call, `at` seconds after the begin of the shutdown."""

    at: float
    number: int


def planned_ends(numbers: Collection[int], seconds: float) -> tuple[PlannedEnd, ...]:
    """Return the end of each call by its number, oldest call first, evenly spread over `seconds`.

    The first call ends at once and the last one before `seconds` have passed, so a single call never waits.
    For example, calls 7, 3, 9 and 4 within 20 s: 3 at 0 s, 4 at 5 s, 7 at 10 s, 9 at 15 s.
    """
    step = seconds / max(1, len(numbers))
    return tuple(PlannedEnd(step * index, number) for index, number in enumerate(sorted(numbers)))
