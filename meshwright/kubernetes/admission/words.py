"""Problems as kubectl prints them: a refusal of several lines, or warnings of one line each.

An API server cuts long warnings and drops further ones. Texts are therefore shortened here, and the last line
gives the number of omitted problems.
"""

from collections.abc import Sequence
from typing import Final

from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem

LONGEST: Final = 256
"""Maximum characters of a warning, as Kubernetes recommends."""

MOST: Final = 12
"""Maximum warnings in one answer, because an API server passes on 4096 bytes of warnings."""

MOST_LINES: Final = 20
"""Maximum lines of a refusal."""


def line(problem: Problem, key: ObjectKey | None) -> str:
    """Return a problem as one line: the object if it is not `key`, field and value, and the expected value.

    For example `spec.weight is -1: must be 0 or more (MW1012)`.
    """
    whose = "" if problem.key in (None, key) else f"{problem.key}: "
    there = " ".join(part for part in (problem.field, f"is {problem.value}" if problem.value else "") if part)
    return " ".join(f"{whose}{there + ': ' if there else ''}{problem.expected} ({problem.code})".split())


def refusal(key: ObjectKey | None, errors: Sequence[Problem]) -> str:
    """Return the message of a refusal: each error has a line of its own."""
    lines = [line(error, key) for error in errors]
    more = len(lines) - MOST_LINES
    shown = [f"  - {item}" for item in lines[:MOST_LINES]] + ([f"  - and {more} more"] if more > 0 else [])
    return "\n".join((f"{key or 'the object'} is invalid:", *shown))


def warnings(key: ObjectKey | None, problems: Sequence[Problem], further: str = "") -> tuple[str, ...]:
    """Return problems as warnings. `further` always is the last line, even if problems are omitted."""
    lines = [shortened(line(problem, key)) for problem in problems]
    room = MOST - bool(further)
    if len(lines) > room:
        left = len(lines) - room + 1
        lines = [*lines[: room - 1], f"and {left} more: `meshwright lint --kubernetes` lists all of them"]
    return (*lines, *((shortened(further),) if further else ()))


def shortened(text: str) -> str:
    """Return a text of at most LONGEST characters; the problem code at its end is kept."""
    if len(text) <= LONGEST:
        return text
    head, space, code = text.rpartition(" (")
    end = f"... ({code}" if space else "..."
    return f"{(head if space else text)[: LONGEST - len(end)]}{end}"
