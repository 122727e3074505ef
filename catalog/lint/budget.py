"""How much work lint puts into one object, so that one large object delays no other.

A check that compares things with each other (matches with matches, sources with other objects) spends steps
of a budget that belongs to this object and this check alone. When the budget is spent, the check ends: what
it has found stands, and a finding of its own (NOT_LOOKED_FURTHER) says how much was looked at. Budgets count
steps, not seconds, so that the same objects have the same findings everywhere.
"""

from collections.abc import Callable, Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.wording import Place
from meshwright.mesh.problems.problem import Problem, Severity

MOST: Final = 50_000
"""Steps of one check of one object: some tens of milliseconds."""


class SpentError(Exception):
    """The budget is spent; the check ends here."""


class Budget:
    """The steps that a check may still take."""

    __slots__ = ("most", "spent")

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.spent = 0

    def spend(self, steps: int = 1) -> None:
        """Take steps; raise SpentError, having taken none of them, where so many are not left."""
        if self.spent + steps > self.most:
            raise SpentError
        self.spent += steps


def within(
    place: Place,
    field: str,
    looked_for: str,
    check: Callable[[Budget], Iterator[Problem]],
    most: int = MOST,
) -> Iterator[Problem]:
    """Yield what a check finds within its budget, and that it looked no further, where it did not.

    `field` is what was looked at, and `looked_for` what for, such as `matches without effect`.
    """
    budget = Budget(most)
    try:
        yield from check(budget)
    except SpentError:
        wanted = (
            f"not looked further for {looked_for}: {budget.spent} steps were taken, and {budget.most} "
            "is the bound; what was found by then is said, and more may be wrong. "
            "Spread this over several objects"
        )
        yield place.problem(Code.NOT_LOOKED_FURTHER, Severity.INFO, field, "", wanted)
