"""How a problem is put into words, and where it is said to be."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from catalog.store.objects import origin_of
from catalog.store.view import View
from mesh.codes import ProblemCode
from mesh.objects import ObjectKey
from mesh.problems import Problem, Severity

_LONGEST: Final = 200

SUGGESTED: Final = 5
"""Of so many names that are not there it is looked which may be meant."""

COMPARED: Final = 500
"""Among so many names one that is like another is looked for."""


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


def meant(unknown: Sequence[str], there: Sequence[str]) -> str:
    """Say which of those that are there may be meant by names that are not; empty if none is like them.

    Of a few names, and where not too many are there: this is one step on the event loop.
    """
    if len(there) > COMPARED:
        return ""
    near = [found[0] for each in unknown[:SUGGESTED] if (found := get_close_matches(each[:60], there, n=1))]
    return f" (did you mean {', '.join(dict.fromkeys(near))}?)" if near else ""
