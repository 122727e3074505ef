"""Problems as kubectl prints them: a refusal of several lines, warnings of one line each.

An API server passes on a warning of so many characters, and so many characters of all of them; what is left
out is said.
"""

from collections.abc import Sequence
from typing import Final

from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem

LONGEST: Final = 256
"""Characters of a warning, as Kubernetes advises."""

MOST: Final = 12
"""Warnings of one answer: an API server passes on 4096 bytes of them."""

MOST_LINES: Final = 20
"""Lines of a refusal."""


def line(problem: Problem, key: ObjectKey | None) -> str:
    """Return a problem as a line: whose it is if not `key`'s, what is there, and what would be right."""
    whose = "" if problem.key in (None, key) else f"{problem.key}: "
    there = " ".join(part for part in (problem.field, f"is {problem.value}" if problem.value else "") if part)
    return " ".join(f"{whose}{there + ': ' if there else ''}{problem.expected} ({problem.code})".split())


def refusal(key: ObjectKey | None, errors: Sequence[Problem]) -> str:
    """Return why an object is refused: each error on a line of its own."""
    lines = [line(each, key) for each in errors]
    more = len(lines) - MOST_LINES
    shown = [f"  - {each}" for each in lines[:MOST_LINES]] + ([f"  - and {more} more"] if more > 0 else [])
    return "\n".join((f"{key or 'the object'} is invalid:", *shown))


def warnings(key: ObjectKey | None, problems: Sequence[Problem], further: str = "") -> tuple[str, ...]:
    """Return problems as warnings; `further` is said in the end, whatever else is left out."""
    lines = [shortened(line(each, key)) for each in problems]
    room = MOST - bool(further)
    if len(lines) > room:
        left = len(lines) - room + 1
        lines = [*lines[: room - 1], f"and {left} more: `meshwright lint --kubernetes` lists all of them"]
    return (*lines, *((shortened(further),) if further else ()))


def shortened(text: str) -> str:
    """Return a text that is no longer than a warning may be; its end, with the code, is kept."""
    if len(text) <= LONGEST:
        return text
    head, space, code = text.rpartition(" (")
    end = f"... ({code}" if space else "..."
    return f"{(head if space else text)[: LONGEST - len(end)]}{end}"
