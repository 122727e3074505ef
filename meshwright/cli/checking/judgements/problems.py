"""Problems of policy objects as one check: their number, and the first problems."""

from collections.abc import Sequence
from dataclasses import dataclass

from meshwright.cli.checking.judgements.check import Check, counted
from meshwright.mesh.problems.problem import Severity


@dataclass(frozen=True, slots=True)
class ObjectProblem:
    """A problem of a policy object: code, severity, and the text in one line."""

    code: str
    severity: Severity
    line: str


def judged(
    name: str, object_problems: Sequence[ObjectProblem], do: str, none: str, prefix: str = ""
) -> Check:
    """Return FAILED for errors and WARNING for warnings, else OK with the text `none`.

    `prefix` is a prefix for the number of problems.
    """
    errors, warnings = (
        [object_problem.line for object_problem in object_problems if object_problem.severity is severity]
        for severity in (Severity.ERROR, Severity.WARNING)
    )
    if not (errors or warnings):
        return Check.ok(name, none)
    text = f"{prefix}{counted(len(errors), 'error')}, {counted(len(warnings), 'warning')}; "
    text += (errors or warnings)[0]
    return Check.failed(name, text, do) if errors else Check.warning(name, text, do)
