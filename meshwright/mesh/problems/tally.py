"""Bound on the problems of one kind in a document, file or object; the rest is only counted.

Without a bound a file of 4 MiB causes some hundred thousand problems, each of them a line of the log, of
every page and of every answer.
"""

from collections import Counter
from typing import Final

from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import Origin
from meshwright.mesh.problems.problem import Problem, Problems, Severity

MOST: Final = 200
"""Limit of problems of one kind; a kind is a code with a severity."""


class Tally:
    """Counter of problems by kind, for keeping the first MOST of each kind."""

    __slots__ = ("_counts", "_kept")

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Severity]] = Counter()
        self._kept: Counter[tuple[str, Severity]] = Counter()

    def admits(self, code: str, severity: Severity, more: int = 0) -> bool:
        """Count a problem, and `more` of its kind that were never created; return whether to keep it."""
        kind = (code, severity)
        self._counts[kind] += 1 + more
        if self._kept[kind] == MOST:
            return False
        self._kept[kind] += 1
        return True

    def rest(self, origin: Origin, key: ObjectKey | None, where: str) -> Problems:
        """Return a problem for each kind with dropped problems, with their number.

        `where` is their common place, for example `in this document`.
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
    """Return the first MOST problems of each kind, and the number of dropped ones of each kind.

    The problem with the number is at the place of the first one, and names the object if all belong to one.
    """
    if len(problems) <= MOST:
        return problems
    tally = Tally()
    kept = tuple(problem for problem in problems if tally.admits(problem.code, problem.severity))
    first = problems[0]
    # The count of dropped problems belongs to an object only if all of them do.
    key = first.key if all(problem.key == first.key for problem in problems) else None
    return (*kept, *tally.rest(first.origin, key, where))
