"""A review judged: what refuses the object, and what its owner should look at, within the review's time."""

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
"""The second mesh is forgotten when nobody has asked for so long."""


def yielding() -> None:
    """Let the event loop run, if it waits to: else it waits five milliseconds each time."""
    time.sleep(0)


_log = structlog.get_logger("admission.judging")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a review comes to: why the object is refused, empty where it is not, and what is warned of."""

    refused: str = ""
    warnings: tuple[str, ...] = ()
    looked: bool = True


@dataclass(frozen=True, slots=True)
class MeshMoment:
    """What the mesh is, at one moment."""

    merged: MergedObjects
    admissions: Admissions


class Judge:
    """Judges reviews against the mesh of the moment, within the time of each review.

    Objects are read in one thread, and their effect on the mesh is found out in another, one object at a time
    in each. Clients take turns in both (`meshwright.kubernetes.admission.turns`), and work stops with the
    review that it is for.
    `source` is the name of the cluster's source, and `cluster` that of the cluster, for origins. `now` is
    asked on the event loop.
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
        self._asked_at = monotonic()

    async def judge(self, review: Review, seconds: float) -> Verdict:
        """Return the verdict, after `seconds` with less in it; what fails is logged, and refuses nothing."""
        until = self._asked_at = self._monotonic()
        until += seconds
        try:
            async with asyncio.timeout(seconds):
                reading, errors, is_new = await self._reading.run(review.client, partial(self._read, review))
        except (TimeoutError, FullError):
            return Verdict(warnings=(NOT_READ,), looked=False)
        if is_new:
            return Verdict(words.refusal(review.key, errors))
        own = tuple(each for each in reading.problems if each.severity is not Severity.INFO)
        if errors or (review.document is not None and not reading.objects):
            return Verdict(warnings=words.warnings(review.key, own))
        found = await self._comes_to(review, reading, until)
        further = NOT_LOOKED if found is None else ""
        said = (*own, *_in_order(_told_at_once(review, found or ()), review.key))
        return Verdict(warnings=words.warnings(review.key, said, further), looked=found is not None)

    @property
    def values(self) -> int:
        """How many derived values are remembered for it."""
        trial = self._trial
        return 0 if trial is None else trial.values

    @property
    def waiting(self) -> int:
        """How many reviews wait for a thread, or have it."""
        return self._reading.waiting + self._looking.waiting

    def _read(self, review: Review, check: Check) -> tuple[ManifestReading, list[Problem], bool]:
        """Return in the thread what an object is read as, its errors, and whether it is refused for them.

        Who labels an object that has had all its errors before, or deletes it, need not mend it first.
        """
        if review.document is None:
            return ManifestReading(key=review.key), [], False
        reading = read_shown(review.document, self._origin)
        errors = [each for each in reading.problems if each.severity is Severity.ERROR]
        if not errors or not refusable(review):
            return reading, errors, False
        check()
        before = () if review.before is None else read_shown(review.before, self._origin).problems
        return reading, errors, not set(errors) <= set(before)

    @property
    def _origin(self) -> InCluster:
        return InCluster(self._cluster, "")

    async def _comes_to(self, review: Review, reading: ManifestReading, until: float) -> Problems | None:
        """Return what would be wrong in the mesh, None where that is not found out in time."""
        changes = [(key, SourcedObject(key, value, self._origin)) for key, value in reading.objects]
        gone = [(review.key, None)] if review.document is None and review.key is not None else []
        work = partial(self._tried, self._now(), [*changes, *gone])
        try:
            async with asyncio.timeout(max(0.0, until - self._monotonic())):
                return await self._looking.run(review.client, work)
        except (TimeoutError, FullError):
            return None
        except Exception as error:  # noqa: BLE001 - whatever it was, it is said, and no object waits for it
            _log.error("admission review failed", error=f"{type(error).__name__}: {error}")
            return None

    def _tried(
        self, now: MeshMoment, changes: list[tuple[ObjectKey, SourcedObject | None]], check: Check
    ) -> Problems:
        """In the thread: come up to date in any case, for those who ask next; look while somebody waits."""
        trial = self._trial = self._trial or self._new_trial()
        try:
            trial.follow(now.merged, now.admissions)
            check()
            return tuple(each for key, value in changes for each in trial.of(self._source, key, value, check))
        except LateError:
            raise  # the second mesh is as it was
        except BaseException:
            self._trial = None  # whatever state it is in: the next review may wait for this thread already
            raise

    def tidy(self) -> None:
        """Forget the second mesh if nobody has asked for a while."""
        if self._monotonic() - self._asked_at > IDLE_SECONDS and not self.waiting:
            self._trial = None

    async def tidying(self) -> None:
        """Forget the second mesh when nobody has asked for a while, until cancelled."""
        try:
            while True:
                await asyncio.sleep(IDLE_SECONDS / 5)
                self.tidy()
        finally:
            self._reading.close()
            self._looking.close()


def refusable(review: Review) -> bool:
    """Say whether an object may be refused: policy may, what Kubernetes itself runs on is only warned of."""
    return review.operation is not Operation.DELETE and review.kind in INSTALLED


def _told_at_once(review: Review, found: Problems) -> Problems:
    """Return the problems to warn of in the answer to a review.

    Left out is what ends when another object comes, because the next manifest may be that object. If it does
    not come, an Event tells so (`meshwright.kubernetes.status.events.patience`). The answer to a dry run has
    everything, because no Event follows it. So has the answer where an object is deleted, or changed so that
    others miss a part of it.
    """
    if review.dry_run or review.operation is Operation.DELETE:
        return found
    waiting = passing(found)
    is_update = review.operation is Operation.UPDATE
    return tuple(each for each in found if each not in waiting or (is_update and each.key != review.key))


def _in_order(problems: Problems, key: ObjectKey | None) -> list[Problem]:
    """Return what is to be looked at: the object's own first, errors before warnings."""
    said = [each for each in problems if each.severity is not Severity.INFO]
    return sorted(said, key=lambda each: (each.key != key, each.severity is not Severity.ERROR))
