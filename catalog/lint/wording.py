"""Problems with the origin of their object; lists and suggestions of names for the texts of problems."""

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
"""Most unknown names of an object for which a similar name is suggested."""

LISTED: Final = 50
"""Maximum number of names listed in a problem."""

OR_OUTSIDE: Final = "or its namespace is not part of the mesh (settings namespaces and namespace_selector)"
"""Clause about an object of another namespace, which the cluster may have although the mesh does not."""


def problem_of(
    view: View, key: ObjectKey, code: ProblemCode, severity: Severity, field: str, value: str, expected: str
) -> Problem:
    """Return a problem of an object, with the origin of the object's manifest."""
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
    """An object of a view; its methods return problems of this object."""

    view: View
    key: ObjectKey

    def problem(
        self, code: ProblemCode, severity: Severity, field: str, value: str, expected: str
    ) -> Problem:
        """Return a problem of any severity."""
        return problem_of(self.view, self.key, code, severity, field, value, expected)

    def error(self, code: ProblemCode, field: str, value: str, expected: str) -> Problem:
        """Return a problem of severity ERROR: a part of the object has no effect."""
        return problem_of(self.view, self.key, code, Severity.ERROR, field, value, expected)

    def warning(self, code: ProblemCode, field: str, value: str, expected: str) -> Problem:
        """Return a problem of severity WARNING: the object still applies."""
        return problem_of(self.view, self.key, code, Severity.WARNING, field, value, expected)


class Suggestions:
    """Suggestions of existing names for the unknown names of one object.

    An object may have thousands of unknown names. Therefore `there`, which returns the existing names, is
    called at most once, and only the first SUGGESTED unknown names get a suggestion.
    """

    def __init__(self, there: Callable[[], Iterable[str]]) -> None:
        self._list = there
        self._there: list[str] | None = None
        self._count = 0

    def hint(self, *unknown: str) -> str:
        """Return a clause with existing names similar to `unknown`, for example ` (did you mean shop?)`.

        The text is empty without a similar name, and once SUGGESTED names of the object were compared.
        """
        asked = unknown[: SUGGESTED - self._count]
        if not asked:
            return ""
        self._count += len(asked)
        if self._there is None:
            self._there = list(self._list())
        return meant(asked, self._there)


def listed(names: Sequence[str]) -> str:
    """Return names with commas: the first LISTED, and the number of the others.

    A large object may have a problem for each of many references, so a problem must not repeat all names.
    """
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def meant(unknown: Sequence[str], there: Sequence[str]) -> str:
    """Return a clause with existing names similar to unknown ones, for example ` (did you mean shop?)`.

    Only the first SUGGESTED names are compared, because this is one step on the event loop.
    """
    near = [result for item in unknown[:SUGGESTED] if (result := nearest(item, there))]
    return f" (did you mean {', '.join(dict.fromkeys(near))}?)" if near else ""
