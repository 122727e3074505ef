"""What is wrong with objects, as checks tell it: how much there is, and the first of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from meshwright.cli.checking.judgements.check import Check, counted
from meshwright.mesh.problems.problem import Severity


@dataclass(frozen=True, slots=True)
class ObjectProblem:
    """Something that is wrong with objects, by its code and in one line."""

    code: str
    severity: Severity
    line: str


def judged(name: str, found: Sequence[ObjectProblem], do: str, none: str, what: str = "") -> Check:
    """Return FAILED where there are errors, WARNING where there are warnings; else `none` is said.

    `what` is said before how much there is.
    """
    errors, warnings = (
        [each.line for each in found if each.severity is severity]
        for severity in (Severity.ERROR, Severity.WARNING)
    )
    if not (errors or warnings):
        return Check.ok(name, none)
    said = f"{what}{counted(len(errors), 'error')}, {counted(len(warnings), 'warning')}; "
    said += (errors or warnings)[0]
    return Check.failed(name, said, do) if errors else Check.warning(name, said, do)
