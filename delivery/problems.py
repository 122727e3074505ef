"""What is wrong, from whoever says it, as one sorted list; and how it is logged."""

from collections.abc import Iterable

import structlog

from delivery.snapshots.published import Failure
from mesh.objects import Origin, Problem, Severity

_log = structlog.get_logger("delivery.problems")

Said = tuple[Problem, ...]


class AllProblems:
    """The problems of all that find some, sorted anew only when one of them says something else."""

    def __init__(self) -> None:
        self._parts: dict[str, Said] = {}
        self._all: Said = ()

    def update(self, **parts: Said) -> Said:
        """Take what some of them say now; return everything, the very same if nothing is other."""
        changed = {name: said for name, said in parts.items() if said != self._parts.get(name, ())}
        if changed:
            self._parts.update(changed)
            self._all = ordered(problem for said in self._parts.values() for problem in said)
        return self._all


def ordered(problems: Iterable[Problem]) -> Said:
    """Return problems sorted, each once."""
    return tuple(sorted(set(problems), key=problem_order))


def problem_order(problem: Problem) -> tuple[Origin, str, str, str, str]:
    """Return what problems are sorted by; their keys may be None, which has no order."""
    return (problem.origin, problem.code, str(problem.key), problem.field, problem.value)


def failure_problem(failure: Failure) -> Problem:
    """Say that a group failed, in the form of all problems."""
    return Problem(
        "translation-failed",
        Severity.ERROR,
        Origin("catalog"),
        None,
        "group",
        failure.group,
        f"{failure.error} ({failure.kept} of {failure.proxies} proxies keep what they had)",
    )


def failed_wave(problems: Said, error: Exception) -> Said:
    """Return the input's problems, and that the wave failed."""
    said = Problem("wave-failed", Severity.ERROR, Origin("catalog"), None, "", "", f"{error}")
    return ordered((*problems, said))


def log_new(problems: Said, before: Said, known: Said) -> None:
    """Log the problems that are new, but for those `known` ones that their source has logged."""
    if problems is before:
        return
    silent = {*before, *known}
    for problem in problems:
        if problem not in silent:
            _log_problem(problem)


def _log_problem(problem: Problem) -> None:
    match problem.severity:
        case Severity.ERROR:
            say = _log.error
        case Severity.WARNING:
            say = _log.warning
        case Severity.INFO:
            say = _log.info
    say("problem", problem=str(problem))
