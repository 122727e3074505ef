"""Hold back problems that may end by themselves, so that no Event tells of one that is gone a second later.

An object that names another one which does not exist yet is usually followed by that one
(`catalog.lint.missing_objects`). Its problem is passed on when it has stood for `HELD_SECONDS`. All other
problems are passed on at once. Time is an argument: the caller reads the clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catalog.lint.missing_objects import may_pass
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem

HELD_SECONDS: Final = 10.0
"""Seconds for which a reference may lead to nothing before its owner is told."""


@dataclass(frozen=True, slots=True)
class Place:
    """A field of an object, and a code: words of the problem and the object's version may change."""

    key: ObjectKey | None
    code: str
    field: str


class Patience:
    """Passes problems on as they come and go, those that may end by themselves only when they have stood.

    The time of a place begins with its first problem and ends when the place has none: an object that is
    applied again with the same fault, or with another value in the same field, is not given time anew.
    """

    def __init__(self) -> None:
        self._standing: dict[Place, dict[Problem, None]] = {}
        self._since: dict[Place, float] = {}
        """Places that wait, oldest first."""

    def passed(self, moves: Mapping[Problem, bool], now: float) -> dict[Problem, bool]:
        """Return the moves to pass on at `now` (seconds): True for a problem that stands, else False."""
        ready = {each: stands for each, stands in moves.items() if not may_pass(each)}
        held = {each: stands for each, stands in moves.items() if may_pass(each)}
        for problem in (each for each, stands in held.items() if stands):
            self._begin(problem, now, ready)
        for problem in (each for each, stands in held.items() if not stands):
            self._end(problem, ready)
        return ready | self._due(now)

    def seconds(self, now: float) -> float | None:
        """Return the seconds until the next problem is due; None where none waits."""
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
