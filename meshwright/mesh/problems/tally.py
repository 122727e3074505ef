"""Bound of the problems of one kind that a document, file or object may bring; the rest is counted.

Without a bound one file of 4 MiB makes some hundred thousand problems, each of them a line of the log, of
every page and of every answer.
"""

from collections import Counter
from typing import Final

from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import Origin
from meshwright.mesh.problems.problem import Problem, Problems, Severity

MOST: Final = 200
"""How many problems of one kind are kept; a kind is a code with a severity."""


class Tally:
    """Counts problems by kind, and says of each whether it is among the first 200 of its kind."""

    __slots__ = ("_counts", "_kept")

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Severity]] = Counter()
        self._kept: Counter[tuple[str, Severity]] = Counter()

    def admits(self, code: str, severity: Severity, more: int = 0) -> bool:
        """Count a problem, and `more` of its kind that were not even made; return whether to keep it."""
        kind = (code, severity)
        self._counts[kind] += 1 + more
        if self._kept[kind] == MOST:
            return False
        self._kept[kind] += 1
        return True

    def rest(self, origin: Origin, key: ObjectKey | None, where: str) -> Problems:
        """Return a problem for each kind of which not all were kept, with the number of those that were not.

        `where` says what they have in common, as `in this document`.
        """
        left = {kind: count - self._kept[kind] for kind, count in self._counts.items()}
        return tuple(
            Problem(
                code=code,
                severity=severity,
                origin=origin,
                key=key,
                expected=f"and {left[code, severity]:,} more problems of this kind {where}",
            )
            for code, severity in sorted(left)
            if left[code, severity]
        )


def bounded(problems: Problems, where: str) -> Problems:
    """Return the first 200 problems of each kind, and of each kind how many more there are.

    The problem that says so is at the place of the first one, and of its object if all are of that one.
    """
    if len(problems) <= MOST:
        return problems
    tally = Tally()
    kept = tuple(each for each in problems if tally.admits(each.code, each.severity))
    first = problems[0]
    key = first.key if all(each.key == first.key for each in problems) else None
    return (*kept, *tally.rest(first.origin, key, where))
