"""A review judged: what refuses the object, and what its owner should look at, within the review's time."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import structlog

from admission import words
from admission.review import Operation, Review
from admission.trial import Admissions, Trial
from mesh.objects import ObjectKey, Sourced
from mesh.origins import InCluster
from mesh.problems import Problem, Problems, Severity
from providers.merge import Merged
from specs.reader import Reading
from specs.reference.meanings.installed import INSTALLED
from specs.shown import read_shown

NOT_LOOKED: Final = (
    "what this comes to with the rest of the mesh took too long to find out, and is not said here: "
    "`meshwright lint --kubernetes` says it"
)
WAITING: Final = 32
"""Reviews that wait for their turn; of more it is not found out what they come to."""

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
class Now:
    """What the mesh is, at one moment."""

    merged: Merged
    admissions: Admissions


class Judge:
    """Judges reviews in a thread of its own, one at a time, against the mesh of the moment.

    `source` is the name of the cluster's source, and `cluster` that of the cluster, for origins. `now` is
    asked on the event loop. Reading an object has no bound but its size; looking at what it comes to has the
    time that the review leaves.
    """

    def __init__(
        self,
        source: str,
        cluster: str,
        now: Callable[[], Now],
        new_trial: Callable[[], Trial],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._cluster = source, cluster
        self._now, self._new_trial, self._monotonic = now, new_trial, monotonic
        self._thread = ThreadPoolExecutor(1, "admission")
        self._trial: Trial | None = None
        self._waiting = 0
        self._asked_at = monotonic()

    async def judge(self, review: Review, seconds: float) -> Verdict:
        """Return the verdict, after `seconds` with less in it; what fails is logged, and refuses nothing."""
        until = self._asked_at = self._monotonic()
        until += seconds
        if review.document is None:
            reading = Reading(key=review.key)
        else:
            reading = await asyncio.to_thread(read_shown, review.document, self._origin)
        errors = [each for each in reading.problems if each.severity is Severity.ERROR]
        if errors and refusable(review) and not await self._were_there(review, errors):
            return Verdict(words.refusal(review.key, errors))
        own = tuple(each for each in reading.problems if each.severity is not Severity.INFO)
        if errors or (review.document is not None and not reading.objects):
            return Verdict(warnings=words.warnings(review.key, own))
        found = await self._comes_to(review, reading, until)
        further = NOT_LOOKED if found is None else ""
        said = (*own, *_in_order(found or (), review.key))
        return Verdict(warnings=words.warnings(review.key, said, further), looked=found is not None)

    @property
    def values(self) -> int:
        """How many derived values are remembered for it."""
        trial = self._trial
        return 0 if trial is None else trial.values

    async def _were_there(self, review: Review, errors: list[Problem]) -> bool:
        """Say whether an object has no error that it has not had before.

        Whoever labels an object that came while nobody judged, or has it go, is not to mend it first.
        """
        if review.before is None:
            return False
        before = await asyncio.to_thread(read_shown, review.before, self._origin)
        return set(errors) <= set(before.problems)

    @property
    def _origin(self) -> InCluster:
        return InCluster(self._cluster, "")

    async def _comes_to(self, review: Review, reading: Reading, until: float) -> Problems | None:
        """Return what would be wrong in the mesh, None where that is not found out in time."""
        changes = [(key, Sourced(key, value, self._origin)) for key, value in reading.objects]
        gone = [(review.key, None)] if review.document is None and review.key is not None else []
        if self._waiting >= WAITING:
            return None
        now = self._now()
        self._waiting += 1
        work = asyncio.get_running_loop().run_in_executor(
            self._thread, self._tried, now, [*changes, *gone], until
        )
        work.add_done_callback(self._done)
        try:
            async with asyncio.timeout(max(0.0, until - self._monotonic())):
                return await asyncio.shield(work)
        except TimeoutError:
            return None
        except Exception:  # noqa: BLE001 - whatever it was, it is said, and no object waits for it
            return None

    def _done(self, work: asyncio.Future[Problems | None]) -> None:
        self._waiting -= 1
        if not work.cancelled() and (error := work.exception()) is not None:
            _log.error("a review was not looked at", error=f"{type(error).__name__}: {error}")

    def _tried(
        self, now: Now, changes: list[tuple[ObjectKey, Sourced | None]], until: float
    ) -> Problems | None:
        """In the thread: come up to date in any case, for those who ask next; look if there is time left."""
        trial = self._trial = self._trial or self._new_trial()
        try:
            trial.follow(now.merged, now.admissions)
            if self._monotonic() > until:
                return None
            return tuple(each for key, value in changes for each in trial.of(self._source, key, value))
        except BaseException:
            self._trial = None  # whatever state it is in: the next review may wait for this thread already
            raise

    def tidy(self) -> None:
        """Forget the second mesh if nobody has asked for a while."""
        if self._monotonic() - self._asked_at > IDLE_SECONDS and not self._waiting:
            self._trial = None

    async def tidying(self) -> None:
        """Forget the second mesh when nobody has asked for a while, until cancelled."""
        try:
            while True:
                await asyncio.sleep(IDLE_SECONDS / 5)
                self.tidy()
        finally:
            self._thread.shutdown(wait=False, cancel_futures=True)


def refusable(review: Review) -> bool:
    """Say whether an object may be refused: policy may, what Kubernetes itself runs on is only warned of."""
    return review.operation is not Operation.DELETE and review.kind in INSTALLED


def _in_order(problems: Problems, key: ObjectKey | None) -> list[Problem]:
    """Return what is to be looked at: the object's own first, errors before warnings."""
    said = [each for each in problems if each.severity is not Severity.INFO]
    return sorted(said, key=lambda each: (each.key != key, each.severity is not Severity.ERROR))
