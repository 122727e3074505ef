"""Delay of problems that usually end by themselves, so that Events do not report them.

For example, a TrafficTarget often names a route group whose manifest is applied a second later
(`catalog.lint.missing_objects`). Such a problem is passed on after `HELD_SECONDS`. All other problems are
passed on at once. Time is an argument: the caller reads the clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catalog.lint.missing_objects import may_pass
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem

HELD_SECONDS: Final = 10.0
"""Seconds for which a reference may name a missing object before an Event reports it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Field of an object and problem code. The text of the problem and the object's version may change."""

    key: ObjectKey | None
    code: str
    field: str


class Patience:
    """Passes problems on: at once, or after HELD_SECONDS if a problem may end by itself.

    The time of a place runs from its first problem until the place has no problem. An object with the same
    mistake as before, or with another wrong value in the same field, does not get more time.
    """

    def __init__(self) -> None:
        self._standing: dict[Place, dict[Problem, None]] = {}
        self._since: dict[Place, float] = {}
        """Waiting places, oldest first."""

    def passed(self, moves: Mapping[Problem, bool], now: float) -> dict[Problem, bool]:
        """Return the changes to pass on at `now` (seconds). True: a new problem; False: a resolved one."""
        ready = {item: stands for item, stands in moves.items() if not may_pass(item)}
        held = {item: stands for item, stands in moves.items() if may_pass(item)}
        # New problems come before ended ones, so that a changed value in the same field keeps the place's
        # time.
        for problem in (item for item, stands in held.items() if stands):
            self._begin(problem, now, ready)
        for problem in (item for item, stands in held.items() if not stands):
            self._end(problem, ready)
        return ready | self._due(now)

    def seconds(self, now: float) -> float | None:
        """Return the seconds until the next delayed problem is due for an Event; None if all are reported."""
        first = next(iter(self._since.values()), None)
        return None if first is None else max(0.0, first + HELD_SECONDS - now)

    def _begin(self, problem: Problem, now: float, ready: dict[Problem, bool]) -> None:
        place = _place(problem)
        if place not in self._standing:
            self._since[place] = now
        self._standing.setdefault(place, {})[problem] = None
        if place not in self._since:
            ready[problem] = True

    def _end(self, problem: Problem, ready: dict[Problem, bool]) -> None:
        place = _place(problem)
        stood = self._standing.get(place, {})
        stood.pop(problem, None)
        if place not in self._since:
            ready[problem] = False
        if not stood:
            self._standing.pop(place, None)
            self._since.pop(place, None)

    def _due(self, now: float) -> dict[Problem, bool]:
        due: dict[Problem, bool] = {}
        for place, since in tuple(self._since.items()):
            if now - since < HELD_SECONDS:
                break
            del self._since[place]
            due |= dict.fromkeys(self._standing[place], True)
        return due


def _place(problem: Problem) -> Place:
    return Place(problem.key, problem.code, problem.field)
