"""How a problem is put into words, and where it is said to be."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from catalog.store.objects import origin_of
from catalog.store.view import View
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.codes import ProblemCode
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.problems.spelling import nearest

_LONGEST: Final = 200

SUGGESTED: Final = 5
"""Of so many names that are not there it is looked which may be meant."""

LISTED: Final = 50
"""Names that a problem lists."""

OR_OUTSIDE: Final = "or its namespace is not of the mesh (settings namespaces and namespace_selector)"
"""Why an object of another namespace may be unknown although the cluster has it."""


def say(
    view: View, key: ObjectKey, code: ProblemCode, severity: Severity, field: str, value: str, expected: str
) -> Problem:
    """Return a problem of an object, with the place where the object was read."""
    shown = value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "..."
    return Problem(
        code=code.value,
        severity=severity,
        origin=origin_of(view, key),
        key=key,
        field=field,
        value=shown,
        expected=expected,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """An object of a view, of which problems are said."""

    view: View
    key: ObjectKey

    def problem(
        self, code: ProblemCode, severity: Severity, field: str, value: str, expected: str
    ) -> Problem:
        """Return a problem of any severity."""
        return say(self.view, self.key, code, severity, field, value, expected)

    def error(self, code: ProblemCode, field: str, value: str, expected: str) -> Problem:
        """Return a problem for which something of it is not in force."""
        return say(self.view, self.key, code, Severity.ERROR, field, value, expected)

    def warning(self, code: ProblemCode, field: str, value: str, expected: str) -> Problem:
        """Return a problem of what is in force."""
        return say(self.view, self.key, code, Severity.WARNING, field, value, expected)


class Suggestions:
    """Which of the names that are there may be meant by names that are not, for one object.

    An object may name thousands of things that are not there. `there` is therefore called once at most, and
    the first SUGGESTED names alone get a suggestion.
    """

    def __init__(self, there: Callable[[], Iterable[str]]) -> None:
        self._list = there
        self._there: list[str] | None = None
        self._given = 0

    def of(self, *unknown: str) -> str:
        """Return as `meant` does; empty once there were enough suggestions."""
        asked = unknown[: SUGGESTED - self._given]
        if not asked:
            return ""
        self._given += len(asked)
        if self._there is None:
            self._there = list(self._list())
        return meant(asked, self._there)


def listed(names: Sequence[str]) -> str:
    """Return names with commas between them, the first LISTED of many and how many more there are.

    A problem is said for each of many references, and must not repeat all names of a large object each time.
    """
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def meant(unknown: Sequence[str], there: Sequence[str]) -> str:
    """Say which of those that are there may be meant by names that are not; empty if none is like them.

    Of a few names: this is one step on the event loop.
    """
    near = [found for each in unknown[:SUGGESTED] if (found := nearest(each, there))]
    return f" (did you mean {', '.join(dict.fromkeys(near))}?)" if near else ""
