"""Table of all current problems by reporter and subject, with the changes since each reader's last look."""

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping
from typing import Final

import structlog

from catalog.lint.gateway.refusals import with_refused
from meshwright.delivery.snapshots.published_snapshots import Failure
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Problems, Severity, log_gone, log_new, ordered
from xds.cache import GroupKey

_log = structlog.get_logger("delivery.problems")

_LOGGED: Final = "sources"
"""Reporters with this name log their problems themselves."""


class ProblemChanges:
    """New and solved problems of the mesh since the last call of `take`."""

    def __init__(self, standing: Container[Problem], current: Iterable[Problem] = ()) -> None:
        """Take the table of current problems, `standing`, and the problems that count as new at first."""
        self._standing = standing
        self._stood = dict.fromkeys(current, False)

    def note(self, problem: Problem, *, stood: bool) -> None:
        """Record a new or solved problem; `stood` is True if the problem existed until now."""
        self._stood.setdefault(problem, stood)

    def take(self) -> Mapping[Problem, bool]:
        """Return the changed problems since the last call: True if the problem is in force now."""
        # A problem that disappeared and came back meanwhile is in its old state, so it is left out.
        noted, self._stood = self._stood, {}
        return {
            problem: not stood for problem, stood in noted.items() if stood is not (problem in self._standing)
        }


class AllProblems:
    """The current problems by reporter and subject; a problem reported twice counts once.

    A repeated report costs a comparison, and a changed report its difference. Sorting is done on demand.
    """

    def __init__(self) -> None:
        self._reported: dict[tuple[str, Hashable], Problems] = {}
        self._times: dict[Problem, int] = {}
        self._logged: dict[Problem, int] = {}
        self._unlogged = ProblemChanges(self._times)
        self._followed: list[ProblemChanges] = [self._unlogged]
        self._last_logged: frozenset[Problem] = frozenset()
        self._counts: Counter[Severity] = Counter()
        self._sorted: Problems | None = ()

    def all(self) -> Problems:
        """Return all current problems, sorted; the same object until one of them changes."""
        if self._sorted is None:
            self._sorted = with_refused(ordered(self._times))
        return self._sorted

    def reported(self, *reporters: str) -> Problems:
        """Return the problems of these reporters about the whole mesh."""
        return ordered(problem for who in reporters for problem in self._reported.get((who, None), ()))

    def counts(self) -> Mapping[str, int]:
        """Return the number of problems by severity; all severities are present."""
        return {severity.value: self._counts[severity] for severity in Severity}

    def report(self, reporter: str, subject: Hashable, problems: Problems) -> None:
        """Replace the problems reported by `reporter` about the subject `subject`.

        For example, `report("groups", group, ())` removes the problems of a group that can be computed again.
        """
        before = self._reported.get((reporter, subject), ())
        if problems is before or problems == before:
            return
        if problems:
            self._reported[reporter, subject] = problems
        else:
            del self._reported[reporter, subject]
        old, new = dict.fromkeys(before), dict.fromkeys(problems)
        self._count(reporter, (problem for problem in new if problem not in old), 1)
        self._count(reporter, (problem for problem in old if problem not in new), -1)

    def of_sources(self, by_source: Mapping[str, Problems]) -> None:
        """Replace the problems reported by each source, by name. Sources log their problems themselves."""
        for name, problems in by_source.items():
            self.report(_LOGGED, name, problems)

    def report_lint(self, by_object: Iterable[tuple[Hashable, Problems]]) -> None:
        """Replace the problems between objects, for each object examined by the search (lint)."""
        for of, problems in by_object:
            self.report("lint", of, problems)

    def failed(self, groups: Mapping[GroupKey, Failure | None]) -> None:
        """Replace the problem of each group: its failure, or `None` if the group does not fail any more."""
        for group, failure in groups.items():
            self.report("groups", group, () if failure is None else (failure_problem(failure),))

    def follow(self) -> ProblemChanges:
        """Return a new record of changes, in which all current problems count as new."""
        moves = ProblemChanges(self._times, self._times)
        self._followed.append(moves)
        return moves

    def forget(self) -> None:
        """Drop the problems of all reporters, which will report them again."""
        for who, of in tuple(self._reported):
            self.report(who, of, ())

    def log(self) -> bool:
        """Log new and solved problems since the last call; return True if there are any.

        Problems of sources are left out here, because the sources log them.
        """
        other = self._unlogged.take()
        new = [problem for problem, stands in other.items() if stands and problem not in self._logged]
        log_new(_log, "problem", ordered(new), ())
        gone = [problem for problem, stands in other.items() if problem in self._last_logged and not stands]
        log_gone(_log, ordered(gone), ())
        self._last_logged = self._last_logged.difference(gone).union(new)
        return bool(other)

    def _count(self, reporter: str, problems: Iterable[Problem], by: int) -> None:
        for problem in problems:
            if reporter == _LOGGED:
                _add(self._logged, problem, by)
            before = problem in self._times
            _add(self._times, problem, by)
            if before is not (problem in self._times):
                for moves in self._followed:
                    moves.note(problem, stood=before)
                self._counts[problem.severity] += by
                self._sorted = None


def failure_problem(failure: Failure) -> Problem:
    """Return the problem of a group of proxies for which the snapshot could not be computed."""
    return Problem(
        code="translation-failed",
        severity=Severity.ERROR,
        origin=FromSource("catalog"),
        field="group",
        value=failure.group,
        expected=(
            "The configuration of this group of proxies could not be computed, so "
            f"{failure.kept} of {failure.proxies} proxies keep their last configuration. "
            f"The cause: {failure.error}"
        ),
    )


def wave_problem(error: Exception) -> Problem:
    """Return the problem of a wave that ended with an error."""
    return Problem(
        code="wave-failed",
        severity=Severity.ERROR,
        origin=FromSource("catalog"),
        expected=(
            "A wave failed, so proxies keep their last configuration until a wave succeeds. "
            f"The cause: {error}"
        ),
    )


def _add(times: dict[Problem, int], problem: Problem, by: int) -> None:
    """Add `by` to the count of a problem, and drop the entry at zero."""
    if number := times.get(problem, 0) + by:
        times[problem] = number
    else:
        del times[problem]
