"""What is wrong, from whoever says it, as one sorted list; and how it is logged."""

import structlog

from delivery.snapshots.published import Failure
from mesh.origins import FromSource
from mesh.problems import Problem, Problems, Severity, log_new, ordered

_log = structlog.get_logger("delivery.problems")


class AllProblems:
    """The problems of all that find some, sorted anew only when one of them says something else."""

    def __init__(self) -> None:
        self._parts: dict[str, Problems] = {}
        self._all: Problems = ()

    def update(self, **parts: Problems) -> Problems:
        """Take what some of them say now; return everything, the very same if nothing is other."""
        changed = {name: said for name, said in parts.items() if said != self._parts.get(name, ())}
        if changed:
            self._parts.update(changed)
            self._all = ordered(problem for said in self._parts.values() for problem in said)
        return self._all


def failure_problem(failure: Failure) -> Problem:
    """Say that a group failed, in the form of all problems."""
    return Problem(
        code="translation-failed",
        severity=Severity.ERROR,
        origin=FromSource("catalog"),
        field="group",
        value=failure.group,
        expected=f"{failure.error} ({failure.kept} of {failure.proxies} proxies keep what they had)",
    )


def failed_wave(problems: Problems, error: Exception) -> Problems:
    """Return the input's problems, and that the wave failed."""
    said = Problem(
        code="wave-failed", severity=Severity.ERROR, origin=FromSource("catalog"), expected=f"{error}"
    )
    return ordered((*problems, said))


def log_changes(problems: Problems, before: Problems, known: Problems) -> None:
    """Log the problems that are new, but for those `known` ones that their source has logged."""
    if problems is not before:
        log_new(_log, "problem", problems, (*before, *known))
