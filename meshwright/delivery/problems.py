"""What is wrong, from whoever says it: a table of which a change touches what is other; how it is logged."""

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping
from typing import Final

import structlog

from meshwright.delivery.snapshots.published_snapshots import Failure
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Problems, Severity, log_gone, log_new, ordered
from xds.cache import GroupKey

_log = structlog.get_logger("delivery.problems")

_LOGGED: Final = "sources"
"""Who logs what they say themselves."""


class ProblemChanges:
    """Which problems have come and gone since somebody looked last; at first all there are have come."""

    def __init__(self, standing: Container[Problem], come: Iterable[Problem] = ()) -> None:
        """`standing` is asked whether a problem stands now."""
        self._standing = standing
        self._stood = dict.fromkeys(come, False)

    def note(self, problem: Problem, *, stood: bool) -> None:
        """Note that a problem comes or goes, which `stood` until now or did not."""
        self._stood.setdefault(problem, stood)

    def take(self) -> Mapping[Problem, bool]:
        """Return those that are otherwise than at the last look: whether they stand now."""
        noted, self._stood = self._stood, {}
        return {each: not stood for each, stood in noted.items() if stood is not (each in self._standing)}


class AllProblems:
    """The problems of all that find some, by who says them and of what; each is one, whoever else says it.

    What is said again costs nothing, what is other its difference; they are sorted when somebody asks.
    """

    def __init__(self) -> None:
        self._said: dict[tuple[str, Hashable], Problems] = {}
        self._times: dict[Problem, int] = {}
        self._logged: dict[Problem, int] = {}
        self._unlogged = ProblemChanges(self._times)
        self._followed: list[ProblemChanges] = [self._unlogged]
        self._told: frozenset[Problem] = frozenset()
        self._counts: Counter[Severity] = Counter()
        self._sorted: Problems | None = ()

    def all(self) -> Problems:
        """Return everything that is wrong now, sorted; the very same as long as nothing is other."""
        if self._sorted is None:
            self._sorted = ordered(self._times)
        return self._sorted

    def counts(self) -> Mapping[str, int]:
        """Return how many there are by severity, also of those of which there is none."""
        return {each.value: self._counts[each] for each in Severity}

    def say(self, who: str, of: Hashable, said: Problems) -> None:
        """Take what somebody says of something now, in the place of what that was before."""
        before = self._said.get((who, of), ())
        if said is before or said == before:
            return
        if said:
            self._said[who, of] = said
        else:
            del self._said[who, of]
        old, new = dict.fromkeys(before), dict.fromkeys(said)
        self._count(who, (each for each in new if each not in old), 1)
        self._count(who, (each for each in old if each not in new), -1)

    def of_sources(self, said: Mapping[str, Problems]) -> None:
        """Take what each source says, by its name: it has logged that itself."""
        for name, problems in said.items():
            self.say(_LOGGED, name, problems)

    def found(self, said: Iterable[tuple[Hashable, Problems]]) -> None:
        """Take what is wrong with objects that were looked at."""
        for of, problems in said:
            self.say("lint", of, problems)

    def failed(self, groups: Mapping[GroupKey, Failure | None]) -> None:
        """Take which groups fail now, None where one does no more."""
        for group, failure in groups.items():
            self.say("groups", group, () if failure is None else (failure_problem(failure),))

    def follow(self) -> ProblemChanges:
        """Return what tells somebody from now on which problems come and go."""
        moves = ProblemChanges(self._times, self._times)
        self._followed.append(moves)
        return moves

    def forget(self) -> None:
        """Forget what everybody has said: it is said anew."""
        for who, of in tuple(self._said):
            self.say(who, of, ())

    def log(self) -> bool:
        """Log what is new since the last time but what sources have logged, and what of that has gone.

        Say whether anything is other.
        """
        other = self._unlogged.take()
        new = [each for each, stands in other.items() if stands and each not in self._logged]
        log_new(_log, "problem", ordered(new), ())
        gone = [each for each, stands in other.items() if each in self._told and not stands]
        log_gone(_log, ordered(gone), ())
        self._told = self._told.difference(gone).union(new)
        return bool(other)

    def _count(self, who: str, problems: Iterable[Problem], by: int) -> None:
        for each in problems:
            if who == _LOGGED:
                _add(self._logged, each, by)
            before = each in self._times
            _add(self._times, each, by)
            if before is not (each in self._times):
                for moves in self._followed:
                    moves.note(each, stood=before)
                self._counts[each.severity] += by
                self._sorted = None


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


def wave_problem(error: Exception) -> Problem:
    """Say that a wave failed."""
    return Problem(
        code="wave-failed", severity=Severity.ERROR, origin=FromSource("catalog"), expected=f"{error}"
    )


def _add(times: dict[Problem, int], problem: Problem, by: int) -> None:
    """Count a problem, which is not in the table where it is said no more."""
    if number := times.get(problem, 0) + by:
        times[problem] = number
    else:
        del times[problem]
