"""How a problem is put into words, and where it is said to be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from catalog.store.objects import origin_of
from catalog.store.view import View
from mesh.codes import ProblemCode
from mesh.objects import ObjectKey
from mesh.problems import Problem, Severity
from mesh.spelling import nearest

_LONGEST: Final = 200

SUGGESTED: Final = 5
"""Of so many names that are not there it is looked which may be meant."""


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

    def error(self, code: ProblemCode, field: str, value: str, expected: str) -> Problem:
        """Return a problem for which something of it is not in force."""
        return say(self.view, self.key, code, Severity.ERROR, field, value, expected)

    def warning(self, code: ProblemCode, field: str, value: str, expected: str) -> Problem:
        """Return a problem of what is in force."""
        return say(self.view, self.key, code, Severity.WARNING, field, value, expected)


def meant(unknown: Sequence[str], there: Sequence[str]) -> str:
    """Say which of those that are there may be meant by names that are not; empty if none is like them.

    Of a few names: this is one step on the event loop.
    """
    near = [found for each in unknown[:SUGGESTED] if (found := nearest(each, there))]
    return f" (did you mean {', '.join(dict.fromkeys(near))}?)" if near else ""
