"""The answer of a directory source at one moment, and the differences between two answers, with their log."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import structlog

from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Problem, Problems, Severity, log_gone, log_new
from meshwright.providers.contract import Counts, Freshness
from meshwright.providers.directory.files import DirectoryListing, UnlistedFolder
from meshwright.providers.directory.settlement import Belief
from meshwright.providers.moments import Moment
from meshwright.specs.codes import Code

_log = structlog.get_logger("providers.directory.source")


@dataclass(frozen=True, slots=True)
class Answer:
    """The source's answer; replaced as a whole, so that readers see one moment.

    `held_since` is the moment since when the directory has been empty and this is held back.
    """

    belief: Belief = field(default_factory=Belief)
    listing: DirectoryListing | None = None
    freshness: Freshness = field(default_factory=Freshness)
    problems: Problems = ()
    counts: Counts = field(default_factory=Counts)
    held_since: Moment | None = None

    def after(
        self,
        belief: Belief,
        listing: DirectoryListing,
        freshness: Freshness,
        held_since: Moment | None = None,
    ) -> "Answer":
        """Return the answer after a look at the directory; without a change, computed parts are reused."""
        unlisted, state = listing.unlisted, belief.state
        freshness = replace(freshness, held=("all manifests",) if held_since is not None else ())
        same = self.belief.state is state and self.held_since == held_since and not self.freshness.error
        if same and self.listing is not None and self.listing.unlisted == unlisted:
            return replace(self, belief=belief, listing=listing, freshness=freshness)
        missing = (*map(_unlisted, unlisted), *([_HELD] if held_since is not None else []))
        problems = (*missing, *state.problems())
        counts = Counts.count(state.objects(), state.stale, problems)
        return Answer(belief, listing, freshness, problems, counts, held_since)

    def unreadable(self, error: str, now: datetime) -> "Answer":
        """Return the answer while the directory cannot be read: the same objects, plus this problem."""
        before = self.freshness
        since, known = before.error_since or now, self.problems[1:] if before.error else self.problems
        return replace(
            self,
            # Files that disappeared just before their directory were not deleted on purpose.
            belief=Belief(self.belief.state),
            freshness=replace(before, error=error, error_since=since),
            problems=(_unreadable(error), *known),
        )


def differs(before: Answer, after: Answer) -> bool:
    """Return whether objects, problems or error of the directory differ, so that readers must be notified."""
    return (
        before.belief.state is not after.belief.state
        or before.problems != after.problems
        or before.freshness.error != after.freshness.error
    )


def log_differences(before: Answer, after: Answer) -> None:
    """Log the new and the resolved problems of the directory."""
    if after.problems == before.problems:
        return
    log_new(_log, "manifest problem", after.problems, before.problems)
    log_gone(_log, before.problems, after.problems)


def _unreadable(error: str) -> Problem:
    expected = f"{error}; the objects read from it before stay in force"
    return Problem(
        code=str(Code.DIRECTORY_UNREADABLE), severity=Severity.ERROR, origin=InFile("."), expected=expected
    )


def _unlisted(result: UnlistedFolder) -> Problem:
    return Problem(
        code=str(Code.DIRECTORY_UNREADABLE),
        severity=result.severity,
        origin=InFile(result.folder),
        expected=f"{result.expected}; the objects read from it before stay in force",
    )


_HELD: Final = Problem(
    code=str(Code.EMPTY_HELD),
    severity=Severity.WARNING,
    origin=InFile("."),
    expected="the directory does not have objects any more; the objects read before stay in force for "
    "empty_answer_hold_seconds, in case the directory is empty by mistake",
)
