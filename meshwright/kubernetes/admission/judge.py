"""Verdicts on reviews: an object is refused or stored with warnings, within the time limit of the review."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from catalog.lint.missing_objects import passing
from meshwright.kubernetes.admission import words
from meshwright.kubernetes.admission.review import Operation, Review
from meshwright.kubernetes.admission.trial import Admissions, Trial
from meshwright.kubernetes.admission.turns import Check, FullError, LateError, Turns
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.origins import InCluster
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.providers.merge import MergedObjects
from meshwright.specs.displayed_objects import read_shown
from meshwright.specs.reader import ManifestReading
from meshwright.specs.reference.meanings.definitions import INSTALLED

NOT_LOOKED: Final = (
    "the check of this object against the rest of the mesh took too long and was skipped; run "
    "`meshwright lint --kubernetes` to check it"
)
NOT_READ: Final = (
    "the control plane was too busy to check this object; run `meshwright lint --kubernetes` to check it"
)

IDLE_SECONDS: Final = 300.0
"""Seconds without a review after which the second copy of the mesh is freed."""


def yielding() -> None:
    """Release the interpreter's lock, so that a waiting event loop runs now and not after 5 milliseconds."""
    time.sleep(0)


_log = structlog.get_logger("admission.judging")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a review.

    `refused` is the reason for a refusal, or empty if the object may be stored. `looked` is False if the
    object could not be checked against the mesh in time.
    """

    refused: str = ""
    warnings: tuple[str, ...] = ()
    looked: bool = True


@dataclass(frozen=True, slots=True)
class MeshMoment:
    """The merged objects of all sources and the admissions of proxies at one moment."""

    merged: MergedObjects
    admissions: Admissions


class Judge:
    """Judge of reviews against the current mesh, within the time limit of each review.

    One thread parses objects, and another finds their effect on the mesh, one object at a time. Clients take
    turns in both threads (`meshwright.kubernetes.admission.turns`), and work stops when its review ends.
    `source` is the name of the cluster's source, and `cluster` the name of the cluster in origins. `now` is
    called on the event loop.
    """

    def __init__(
        self,
        source: str,
        cluster: str,
        now: Callable[[], MeshMoment],
        new_trial: Callable[[], Trial],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._cluster = source, cluster
        self._now, self._new_trial, self._monotonic = now, new_trial, monotonic
        self._reading, self._looking = Turns("admission reading"), Turns("admission")
        self._trial: Trial | None = None
        self._last_request_at = monotonic()

    async def judge(self, review: Review, seconds: float) -> Verdict:
        """Return the verdict within `seconds`; when time runs out, the verdict has fewer checks.

        An internal error is logged and never refuses an object.
        """
        until = self._last_request_at = self._monotonic()
        until += seconds
        try:
            async with asyncio.timeout(seconds):
                reading, errors, is_new = await self._reading.run(review.client, partial(self._read, review))
        except (TimeoutError, FullError):
            return Verdict(warnings=(NOT_READ,), looked=False)
        if is_new:
            return Verdict(words.refusal(review.key, errors))
        own = tuple(problem for problem in reading.problems if problem.severity is not Severity.INFO)
        if errors or (review.document is not None and not reading.objects):
            return Verdict(warnings=words.warnings(review.key, own))
        problems = await self._resulting_problems(review, reading, until)
        further = NOT_LOOKED if problems is None else ""
        reported = (*own, *_in_order(_warning_problems(review, problems or ()), review.key))
        return Verdict(warnings=words.warnings(review.key, reported, further), looked=problems is not None)

    @property
    def values(self) -> int:
        """Return the number of derived values in the copy of the mesh for trials; 0 without a copy."""
        trial = self._trial
        return 0 if trial is None else trial.values

    @property
    def waiting(self) -> int:
        """Return the number of admission reviews that wait for a thread or use one."""
        return self._reading.waiting + self._looking.waiting

    def _read(self, review: Review, check: Check) -> tuple[ManifestReading, list[Problem], bool]:
        """Parse an object in the thread; return the reading, the errors, and whether they refuse the object.

        Errors that the stored object already has do not refuse an update. A user can therefore label a broken
        object, for example, without repairing it first.
        """
        if review.document is None:
            return ManifestReading(key=review.key), [], False
        reading = read_shown(review.document, self._origin)
        errors = [problem for problem in reading.problems if problem.severity is Severity.ERROR]
        if not errors or not refusable(review):
            return reading, errors, False
        check()
        before = () if review.before is None else read_shown(review.before, self._origin).problems
        return reading, errors, not set(errors) <= set(before)

    @property
    def _origin(self) -> InCluster:
        return InCluster(self._cluster, "")

    async def _resulting_problems(
        self, review: Review, reading: ManifestReading, until: float
    ) -> Problems | None:
        """Return the problems that the object causes in the mesh, or None if the check was late or failed."""
        changes = [(key, SourcedObject(key, value, self._origin)) for key, value in reading.objects]
        gone = [(review.key, None)] if review.document is None and review.key is not None else []
        work = partial(self._tried, self._now(), [*changes, *gone])
        try:
            async with asyncio.timeout(max(0.0, until - self._monotonic())):
                return await self._looking.run(review.client, work)
        except (TimeoutError, FullError):
            return None
        except Exception as error:  # noqa: BLE001 - any error is logged, and the object is stored unchecked
            _log.error("admission review failed", error=f"{type(error).__name__}: {error}")
            return None

    def _tried(
        self, now: MeshMoment, changes: list[tuple[ObjectKey, SourcedObject | None]], check: Check
    ) -> Problems:
        """Try the changes in the thread.

        The copy of the mesh is brought up to date in any case, for the next review. The changes are tried
        only while the client still waits.
        """
        trial = self._trial = self._trial or self._new_trial()
        try:
            trial.follow(now.merged, now.admissions)
            check()
            return tuple(
                problem
                for key, value in changes
                for problem in trial.new_problems(self._source, key, value, check)
            )
        except LateError:
            raise  # the copy of the mesh is unchanged
        except BaseException:
            self._trial = None  # in an unknown state; cleared now, because the next review may already wait
            raise

    def tidy(self) -> None:
        """Free the second copy of the mesh if the last review was more than IDLE_SECONDS ago."""
        if self._monotonic() - self._last_request_at > IDLE_SECONDS and not self.waiting:
            self._trial = None

    async def tidying(self) -> None:
        """Call `tidy` every minute until cancelled, then stop the threads that check reviewed objects."""
        try:
            while True:
                await asyncio.sleep(IDLE_SECONDS / 5)
                self.tidy()
        finally:
            self._reading.close()
            self._looking.close()


def refusable(review: Review) -> bool:
    """Return whether an object may be refused.

    Policy may. Kubernetes' own kinds (Services, Namespaces) and the Gateway API's only get warnings, and a
    deletion is never refused.
    """
    return review.operation is not Operation.DELETE and review.kind in INSTALLED


def _warning_problems(review: Review, problems: Problems) -> Problems:
    """Return the problems for the warnings of a review.

    Problems that end when another object is created are left out, because the next manifest may create that
    object. If the object stays missing, an Event reports the problem
    (`meshwright.kubernetes.status.events.patience`). A dry run gets all problems, because no Event follows.
    So does a deletion, and an update after which another object lacks something.
    """
    if review.dry_run or review.operation is Operation.DELETE:
        return problems
    waiting = passing(problems)
    is_update = review.operation is Operation.UPDATE
    return tuple(
        problem for problem in problems if problem not in waiting or (is_update and problem.key != review.key)
    )


def _in_order(problems: Problems, key: ObjectKey | None) -> list[Problem]:
    """Return the problems above severity INFO: first those of object `key`, and errors before warnings."""
    reported = [problem for problem in problems if problem.severity is not Severity.INFO]
    return sorted(reported, key=lambda problem: (problem.key != key, problem.severity is not Severity.ERROR))
