"""Limits of the work for one object, so one large object does not delay the others.

A check that compares things with each other (matches with matches, sources with other objects) spends steps
of a budget for this object and this check alone. When the budget is spent, the check ends: the problems so
far are kept, and one more problem (NOT_LOOKED_FURTHER) reports the number of steps. Budgets count steps, not
seconds, so the same objects have the same problems everywhere.
"""

from collections.abc import Callable, Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.wording import Place
from meshwright.mesh.problems.problem import Problem, Severity

MOST: Final = 50_000
"""Steps of one check of one object: some tens of milliseconds."""


class SpentError(Exception):
    """Error for a lint check with its budget spent; the check ends early."""


class Budget:
    """The remaining steps of one lint check, which bound its time."""

    __slots__ = ("most", "spent")

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.spent = 0

    def spend(self, steps: int = 1) -> None:
        """Take steps from the budget. Raises SpentError, without taking any, if fewer are left."""
        if self.spent + steps > self.most:
            # Before the work and not after, so one large step cannot exceed the limit.
            raise SpentError
        self.spent += steps


def within(
    place: Place,
    field: str,
    looked_for: str,
    check: Callable[[Budget], Iterator[Problem]],
    most: int = MOST,
) -> Iterator[Problem]:
    """Yield the problems found by a check within a budget, and NOT_LOOKED_FURTHER if the budget is spent.

    `field` is the checked field. `looked_for` names the problems in the plural, for example
    `matches without effect`.
    """
    budget = Budget(most)
    try:
        yield from check(budget)
    except SpentError:
        wanted = (
            f"The search for {looked_for} stopped after {budget.spent} steps (the limit is "
            f"{budget.most}), because the object is too large. The problems found by then are "
            "reported, and there may be more. Split the object into several smaller ones."
        )
        yield place.problem(Code.NOT_LOOKED_FURTHER, Severity.INFO, field, "", wanted)
