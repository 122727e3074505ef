"""One writer among several: a Lease, which is its whose holder renews it.

No time of another machine is compared with ours: what counts is for how long by our own clock nobody has
renewed the Lease since we saw it as it is (as client-go has it). So whoever comes waits once for as long as
it lasts.
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
    """The times of a Lease, in seconds: client-go's.

    It `lasts` so long after its last renewal. Its holder tries every `every`, and gives it up when it could
    not renew it for `patience`, which is less: two are never sure of it at once.
    """

    lasts: int = 15
    patience: float = 10.0
    every: float = 2.0


TERMS: Final = Terms()
LONGEST: Final = 300
"""For how long a Lease is believed that says itself how long it lasts."""

FAILING: Final = 5
"""How many times as long it is waited after an error: a role that lacks a verb is not mended in seconds."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says: its holder, empty where it was given back, and when that renewed it by its clock.

    `raw` is all of it: what others put on it, such as labels, is to be there after our next step.
    """

    holder: str
    renewed: str
    lasts: float
    changes: int
    acquired: str
    raw: Raw = field(repr=False)

    @classmethod
    def of(cls, raw: Raw, terms: Terms) -> Self:
        """Read a Lease; what is missing or of another type is as if it were empty."""
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
    """A Lease, and since when by our own clock it has not been renewed."""

    held: LeaseRecord
    since: float


class Step(enum.Enum):
    """What to do about a Lease."""

    CREATE = enum.auto()
    TAKE = enum.auto()
    RENEW = enum.auto()
    WAIT = enum.auto()


def seen(before: LeaseObservation | None, held: LeaseRecord, now: float) -> LeaseObservation:
    """Return what is known with what the Lease says now: time counts from the last renewal that we saw."""
    if before is not None and (before.held.holder, before.held.renewed) == (held.holder, held.renewed):
        return LeaseObservation(held, before.since)
    return LeaseObservation(held, now)


def step(known: LeaseObservation | None, me: str, now: float) -> Step:
    """Decide what to do; without a Lease it is made."""
    if known is None:
        return Step.CREATE
    if known.held.holder == me:
        return Step.RENEW
    if not known.held.holder or now - known.since >= known.held.lasts:
        return Step.TAKE
    return Step.WAIT


def document(
    what: Step, known: LeaseObservation | None, named: Mapping[str, str], me: str, at: datetime, terms: Terms
) -> Raw:
    """Return the Lease as it is to be after a step of ours: what else it has stays.

    A new one is `named`, one that is there is replaced as it was seen, or not at all.
    """
    moment = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    before = None if known is None else known.held
    acquired = moment if before is None or what is not Step.RENEW else before.acquired or moment
    said = {
        "holderIdentity": me,
        "leaseDurationSeconds": terms.lasts,
        "acquireTime": acquired,
        "renewTime": moment,
        "leaseTransitions": 0 if before is None else before.changes + (what is Step.TAKE),
    }
    there: Raw = {"metadata": named} if before is None else before.raw
    kind = {"apiVersion": LEASES.api_version, "kind": LEASES.kind}
    return {**there, **kind, "spec": {**_mapping(there.get("spec")), **said}}


class Lease:
    """A Lease by its name, that this process tries to hold as `me`, which no other may be called."""

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
        self._sure_until = float("-inf")

    @property
    def is_held(self) -> bool:
        """Whether nobody else can hold it now."""
        return self._now() < self._sure_until

    async def run(self, lead: Callable[[], Coroutine[object, object, None]]) -> None:
        """Have `lead` run as long as the Lease is held, and again each time it is; until cancelled.

        It is cancelled when the Lease is lost. An error of its own ends this with it. Gives the Lease back.
        """
        while True:
            if not await self._try():
                await self._pause()
                continue
            _log.info("lease held", namespace=self.namespace, lease=self.name, holder=self.me)
            try:
                async with asyncio.TaskGroup() as group:
                    leading = group.create_task(lead(), name=f"holder of lease {self.name}")
                    await self._keep(leading)
            finally:
                await self._give_back()
            _log.warning("lease lost", namespace=self.namespace, lease=self.name, error=self.error)

    async def _keep(self, leading: asyncio.Task[None]) -> None:
        """Renew until the Lease is lost; then end what runs on its strength."""
        while self.is_held and not leading.done():
            left = self._sure_until - self._now()
            await asyncio.wait({leading}, timeout=min(self._terms.every, max(0.0, left)))
            if not leading.done() and self.is_held:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, self._sure_until - self._now())):
                        await self._try()
                if self._known is not None and self._known.held.holder != self.me:
                    self._sure_until = float("-inf")
        leading.cancel()

    async def _try(self) -> bool:
        """Take one step; say whether it made the Lease ours. Whatever fails is logged once."""
        began = self._now()
        try:
            known = self._known = await self._look()
            what = step(known, self.me, self._now())
            if what is Step.WAIT:
                return False
            self._known = seen(known, await self._write(what, known), self._now())
        except KubeError as error:
            if isinstance(error, ApiError) and error.is_conflict:
                return False  # another was faster: seen at the next look
            if (said := str(error)) != self.error:
                _log.warning("lease cannot be held", namespace=self.namespace, lease=self.name, error=said)
            self.error = said
            return False
        self.error = ""
        self._sure_until = began + self._terms.patience
        return True

    async def _look(self) -> LeaseObservation | None:
        try:
            raw = await self._api.get(LEASES, self.namespace, self.name)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        return seen(self._known, LeaseRecord.of(raw, self._terms), self._now())

    async def _write(
        self, what: Step, known: LeaseObservation | None, holder: str | None = None
    ) -> LeaseRecord:
        named = {"name": self.name, "namespace": self.namespace}
        me = self.me if holder is None else holder
        lease = document(what, known, named, me, self._clock(), self._terms)
        if known is None:
            raw = await self._api.create(LEASES, self.namespace, lease)
        else:
            raw = await self._api.replace(LEASES, self.namespace, self.name, lease)
        return LeaseRecord.of(raw, self._terms)

    async def _give_back(self) -> None:
        """Have the next one not wait, if that can be done at once."""
        self._sure_until = float("-inf")
        known, self._known = self._known, None
        if known is None or known.held.holder != self.me:
            return
        with contextlib.suppress(KubeError, TimeoutError):
            async with asyncio.timeout(self._terms.every):
                # Looked at anew: the last renewal may have been cancelled on its way, and have arrived.
                if (there := await self._look()) is not None and there.held.holder == self.me:
                    await self._write(Step.RENEW, there, holder="")
        self._known = None

    async def _pause(self) -> None:
        """Wait for the next look, longer after an error: those who wait do not all look at once."""
        every = self._terms.every * (FAILING if self.error else 1)
        await asyncio.sleep(every * (0.75 + random.random() / 2))  # noqa: S311 - no secret


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
