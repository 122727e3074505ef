"""Leader election with a Lease: one writer among several replicas.

The holder renews the Lease. Times of other machines are never compared with the local clock: a Lease counts
as expired when the local monotonic clock has seen no renewal for its duration (as in client-go). Therefore a
new replica waits once for the full duration before taking an unreleased Lease.
"""

import asyncio
import contextlib
import enum
import random
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self

import structlog

from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError, KubeError
from meshwright.kube.resource import Raw, Resource

LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")

_log = structlog.get_logger("kube.lease")


@dataclass(frozen=True, slots=True)
class Terms:
    """The times of a Lease, in seconds, with the defaults of client-go.

    A Lease expires `lasts` after the last renewal. The holder renews the Lease every `every`, and stops
    leading after `patience` without success. `patience` is less than `lasts`, so that two replicas never lead
    at the same time.
    """

    lasts: int = 15
    patience: float = 10.0
    every: float = 2.0


TERMS: Final = Terms()
LONGEST: Final = 300
"""Maximum accepted duration of an existing Lease, in seconds."""

FAILING: Final = 5
"""Factor of the pause after an error: a missing permission is not granted within seconds."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The content of a Lease: the holder (empty after a release), and the last renewal by the holder's clock.

    `raw` is the whole object, so that labels and other fields of other users survive the next write.
    """

    holder: str
    renewed: str
    lasts: float
    changes: int
    acquired: str
    raw: Raw = field(repr=False)

    @classmethod
    def parse(cls, raw: Raw, terms: Terms) -> Self:
        """Parse a Lease; a missing or malformed field counts as empty."""
        spec = _mapping(raw.get("spec"))
        lasts, changes = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        return cls(
            str(spec.get("holderIdentity") or ""),
            str(spec.get("renewTime") or ""),
            float(min(lasts, LONGEST)) if isinstance(lasts, int) and lasts > 0 else float(terms.lasts),
            changes if isinstance(changes, int) else 0,
            str(spec.get("acquireTime") or ""),
            raw,
        )


@dataclass(frozen=True, slots=True)
class LeaseObservation:
    """The content of a Lease, and the local monotonic time of the last observed renewal."""

    record: LeaseRecord
    since: float


class Step(enum.Enum):
    """The possible next actions of one replica on a Lease."""

    CREATE = enum.auto()
    TAKE = enum.auto()
    RENEW = enum.auto()
    WAIT = enum.auto()


def seen(before: LeaseObservation | None, record: LeaseRecord, now: float) -> LeaseObservation:
    """Return the observation after reading a Lease; the time restarts when holder or renewal time changed."""
    if before is not None and (before.record.holder, before.record.renewed) == (
        record.holder,
        record.renewed,
    ):
        return LeaseObservation(record, before.since)
    return LeaseObservation(record, now)


def step(known: LeaseObservation | None, me: str, now: float) -> Step:
    """Return the next action of the replica `me`; `known` is None if the Lease does not exist."""
    if known is None:
        return Step.CREATE
    if known.record.holder == me:
        return Step.RENEW
    if not known.record.holder or now - known.since >= known.record.lasts:
        return Step.TAKE
    return Step.WAIT


def document(
    action: Step,
    known: LeaseObservation | None,
    named: Mapping[str, str],
    me: str,
    at: datetime,
    terms: Terms,
    least: int = 0,
) -> Raw:
    """Return the Lease to write for an action; fields of other users stay.

    A new Lease gets the metadata `named`. An existing one keeps the resourceVersion, so a concurrent write is
    a conflict. `least` is the lower limit of `leaseTransitions` in a new term.
    """
    moment = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    before = None if known is None else known.record
    acquired = moment if before is None or action is not Step.RENEW else before.acquired or moment
    spec = {
        "holderIdentity": me,
        "leaseDurationSeconds": terms.lasts,
        "acquireTime": acquired,
        "renewTime": moment,
        "leaseTransitions": _transitions(action, before, least),
    }
    there: Raw = {"metadata": named} if before is None else before.raw
    kind = {"apiVersion": LEASES.api_version, "kind": LEASES.kind}
    return {**there, **kind, "spec": {**_mapping(there.get("spec")), **spec}}


def _transitions(action: Step, before: LeaseRecord | None, least: int) -> int:
    if before is None:
        return least
    return max(before.changes + 1, least) if action is Step.TAKE else before.changes


class Lease:
    """A Lease for this process under the name `me`, which must be unique among the replicas."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        me: str,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        terms: Terms = TERMS,
    ) -> None:
        self.namespace, self.name, self.me = namespace, name, me
        self.error = ""
        self._api, self._terms = api, terms
        self._clock, self._now = clock, monotonic
        self._known: LeaseObservation | None = None
        self._is_current = False
        """Whether `_known` is this process's own last write, and no later request is without an answer."""
        self._sure_until = float("-inf")
        # A Lease that was deleted by hand must not begin from 0 again, so the number is also kept here.
        self._most_transitions = -1
        self._term = 0

    @property
    def term(self) -> int:
        """Return the number of the current or last term, from 1; a later term of any holder is greater."""
        return self._term

    @property
    def is_held(self) -> bool:
        """Return whether this process is certain to be the only holder now."""
        return self._now() < self._sure_until

    async def run(self, lead: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run `lead` whenever the Lease is held; return only when cancelled or when `lead` raises.

        `lead` is cancelled when the Lease is lost. An error of `lead` is re-raised in an exception group. If
        `lead` ends by itself, the Lease is released, and acquired again after a pause. The Lease is released
        at the end.
        """
        while True:
            if not await self._try(begins=True):
                await self._pause()
                continue
            self._term = self._most_transitions + 1
            _log.info("lease acquired", namespace=self.namespace, lease=self.name, holder=self.me)
            try:
                async with asyncio.TaskGroup() as group:
                    leading = group.create_task(lead(), name=f"holder of lease {self.name}")
                    await self._keep(leading)
            finally:
                await self._give_back()
            if leading.cancelled():
                _log.warning("lease lost", namespace=self.namespace, lease=self.name, error=self.error)
            else:  # another replica comes first, and work that fails at once does not fail in a loop
                _log.info("lease released", namespace=self.namespace, lease=self.name, holder=self.me)
                await self._pause()

    async def _keep(self, leading: asyncio.Task[None]) -> None:
        """Renew the Lease until lost, then cancel the task that runs only while the Lease is held."""
        while self.is_held and not leading.done():
            left = self._sure_until - self._now()
            await asyncio.wait({leading}, timeout=min(self._terms.every, max(0.0, left)))
            if not leading.done() and self.is_held:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, self._sure_until - self._now())):
                        await self._try()
                if self._known is not None and self._known.record.holder != self.me:
                    self._sure_until = float("-inf")
        leading.cancel()

    async def _try(self, *, begins: bool = False) -> bool:
        """Do one step; return whether the Lease is held now. With `begins`, a success is a new term.

        A failure is logged once for each new text.
        """
        # The time before the request counts, because the server may apply the renewal at any moment after it.
        began = self._now()
        try:
            if (begins or not await self._renew_known()) and not await self._look_and_write(begins=begins):
                return False
        except KubeError as error:
            if isinstance(error, ApiError) and error.is_conflict:
                return False  # another replica was faster; the next read shows it
            if (text := str(error)) != self.error:
                _log.warning(
                    "lease cannot be acquired or renewed",
                    namespace=self.namespace,
                    lease=self.name,
                    error=text,
                )
            self.error = text
            return False
        self.error = ""
        self._sure_until = began + self._terms.patience
        return True

    async def _renew_known(self) -> bool:
        """Renew the Lease as it was written last, with one request; return False after a conflict.

        With a read before each renewal, a server that takes two seconds for each answer would use up the
        patience of the holder.
        """
        known, is_current = self._known, self._is_current
        if known is None or not is_current:
            return False
        # What a request without an answer has done is seen by the next read.
        self._is_current = False
        try:
            record = await self._write(Step.RENEW, known)
        except ApiError as error:
            if error.is_conflict or error.is_not_found:
                return False
            raise
        self._known, self._is_current = seen(known, record, self._now()), True
        return True

    async def _look_and_write(self, *, begins: bool) -> bool:
        """Read the Lease, and do the next step; return False if another replica holds the Lease."""
        self._is_current = False
        known = self._known = await self._look()
        what = step(known, self.me, self._now())
        if what is Step.WAIT:
            return False
        if begins and what is Step.RENEW:
            what = Step.TAKE  # a new term of the same holder, for example after an outage, has a new number
        self._known, self._is_current = seen(known, await self._write(what, known), self._now()), True
        return True

    async def _look(self) -> LeaseObservation | None:
        try:
            raw = await self._api.get(LEASES, self.namespace, self.name)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        return seen(self._known, self._parsed(raw), self._now())

    async def _write(
        self, action: Step, known: LeaseObservation | None, holder: str | None = None
    ) -> LeaseRecord:
        named = {"name": self.name, "namespace": self.namespace}
        me = self.me if holder is None else holder
        least = self._most_transitions + 1
        lease = document(action, known, named, me, self._clock(), self._terms, least)
        if known is None:
            raw = await self._api.create(LEASES, self.namespace, lease)
        else:
            raw = await self._api.replace(LEASES, self.namespace, self.name, lease)
        return self._parsed(raw)

    def _parsed(self, raw: Raw) -> LeaseRecord:
        record = LeaseRecord.parse(raw, self._terms)
        self._most_transitions = max(self._most_transitions, record.changes)
        return record

    async def _give_back(self) -> None:
        """Release the Lease if the server answers soon, so that the next holder need not wait."""
        self._sure_until = float("-inf")
        known, self._known = self._known, None
        if known is None or known.record.holder != self.me:
            return
        with contextlib.suppress(KubeError, TimeoutError):
            async with asyncio.timeout(self._terms.every):
                # Read it again: the last renewal may have been cancelled here but applied by the server.
                if (there := await self._look()) is not None and there.record.holder == self.me:
                    await self._write(Step.RENEW, there, holder="")
        self._known = None

    async def _pause(self) -> None:
        """Wait until the next attempt to acquire the Lease, longer after an error, with jitter."""
        every = self._terms.every * (FAILING if self.error else 1)
        await asyncio.sleep(every * (0.75 + random.random() / 2))  # noqa: S311 - no secret


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
