"""Service certificates for what the catalog needs, kept in step with the mesh's configuration."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from certs import renewal
from certs.contract import Issuer
from certs.errors import CertificateError
from certs.keys.material import ServiceCertificate
from certs.keys.pair import MAKING, KeyPairOptions
from certs.manager import CertificateManager, Request
from certs.retries import Failure, Retries
from certs.state.stored_pair import Pairs
from meshwright.delivery.certificates.issuance_problems import ExpiringCertificate, failure_kind, problem
from meshwright.delivery.certificates.issuing import IssuingStrategy, Need, SequentialIssuing
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.problems.problem import Problems
from xds.protocol.resources.layers import Layers

RENEWAL_SECONDS: Final = 30.0
"""The longest rest between two looks; a wall clock that jumps is noticed within that."""

SHORTEST_SECONDS: Final = 1.0
"""The shortest: what falls due meanwhile is renewed together."""

_log = structlog.get_logger("delivery.certificates")

_ALWAYS: Final = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))

Needs = Mapping[ServiceIdentity, tuple[str, ...] | None]
"""Identities whose need is another one: the DNS names of their certificates, None for none any more."""


def spread() -> float:
    """Return a random number from -1 to 1, for validities that do not all end at once."""
    return random.uniform(-1, 1)  # noqa: S311 - it spreads load, it protects nothing


@dataclass(frozen=True, slots=True)
class Update:
    """What became of a change: certificates that are other ones now (None: gone), the roots, and problems."""

    changed: Mapping[ServiceIdentity, ServiceCertificate | None]
    trust_bundle: bytes = field(repr=False)
    problems: Problems


@dataclass(frozen=True, slots=True)
class IssuanceCounts:
    """What came of a look: certificates issued, those of them that took another's place, failures by kind."""

    issued: int
    renewed: int
    failed: Mapping[str, int]


class ServiceCertificates:
    """Issues what is needed and forgets what is not; for one caller at a time, in whatever thread.

    `counted` is told what came of each look. An identity whose certificate could not be issued is tried
    again after a while of its own, and what it has serves on. While the issuer `waits` nobody gets another
    certificate who can do without.
    """

    def __init__(
        self,
        issuer: Issuer,
        pairs: Pairs,
        counted: Callable[[IssuanceCounts], None],
        jitter: Callable[[], float] = spread,
        *,
        making: KeyPairOptions = MAKING,
        asking: IssuingStrategy | None = None,
        waits: Callable[[datetime], bool] = lambda _: False,
    ) -> None:
        self._issuer = issuer
        self._pairs = pairs
        self._counted = counted
        self._jitter = jitter
        self._making = making
        self._asking = asking or SequentialIssuing()
        self._waits = waits
        self._validity: timedelta | None = None
        self._manager: CertificateManager | None = None
        self._needed: dict[ServiceIdentity, tuple[str, ...]] = {}
        self._retries = Retries(lambda: (1 + jitter()) / 2)
        self._good: tuple[datetime, datetime] | None = None
        self._roots = self._issuer_roots()
        self._failing: tuple[tuple[ServiceCertificate, Failure], ...] = ()
        self._alarmed: set[str] = set()
        self._looked: Callable[[], None] = lambda: None
        self._again: datetime | None = None
        self.problems: Problems = ()
        self.certificates: Layers[ServiceIdentity, ServiceCertificate] = Layers()

    def needs_work(self, now: datetime) -> bool:
        """Say whether a certificate is due or has come, one is to be tried again, or roots are others.

        May be called from any thread.
        """
        if self._manager is None:
            return False
        again = self._again is not None and not now < self._again <= now + renewal.LONGEST_RETRY
        other = self._roots != self._issuer_roots()
        return again or other or self._asking.arrived() or not self._all_good(now)

    async def renewing(self, clock: Callable[[], datetime], changed: Callable[[], None]) -> None:
        """Call `changed` whenever there is work, until cancelled."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the server has ended: nobody waits for the answer any more
                loop.call_soon_threadsafe(woken.set)

        self._asking.when_arrived(wake)
        self._looked = wake
        if self._asking.arrived():  # what came before anybody could be told
            woken.set()
        while True:
            try:
                async with asyncio.timeout(self._rest(clock())):
                    await woken.wait()
            except TimeoutError:
                looks = True
            else:
                # After a look of somebody else it is to rest until another moment than before, and no less.
                looks = self._asking.arrived()
            woken.clear()
            if looks and self.needs_work(clock()):
                changed()

    def _rest(self, now: datetime) -> float:
        """Return for how many seconds nothing needs work, if no clock jumps."""
        ends = [] if self._good is None else [self._good[1]]
        ends += [] if self._again is None else [self._again]
        soonest = min(((end - now).total_seconds() for end in ends), default=RENEWAL_SECONDS)
        return min(max(soonest, SHORTEST_SECONDS), RENEWAL_SECONDS)

    def has_work(self, changes: Needs, validity: timedelta, now: datetime) -> bool:
        """Say whether `update` with these arguments would do anything."""
        return bool(changes) or validity != self._validity or self.needs_work(now)

    def running_out(self, now: datetime) -> tuple[ExpiringCertificate, ...]:
        """Return the certificates that somebody must look after; may be called from any thread."""
        return tuple(
            ExpiringCertificate(held, str(failure.error))
            for held, failure in self._failing
            if now >= renewal.alarm_at(held)
        )

    def update(
        self,
        changes: Needs,
        validity: timedelta,
        now: datetime,
    ) -> Update:
        """Take changed needs, and renew what is due of all that is needed.

        Looks at these identities, at those that failed before and are to be tried again, at those whose
        answers have come, and at all when one may be due or the roots are others.
        """
        manager, roots = self._manager_for(validity), self._issuer_roots()
        for identity, dns_names in changes.items():
            if dns_names is None:
                self._forget(manager, identity)
            else:
                self._needed[identity] = dns_names
        looks_at_all = not self._all_good(now) or roots != self._roots
        work = set(self._needed) if looks_at_all else self._retries.due(now) & self._needed.keys()
        work = {each for each in work if not self._retries.waits(each, now)}
        work |= self._needed.keys() & changes.keys()
        before = self.certificates
        looked = self._look(manager, work, now)
        # By identity: as long as nothing is new, the manager answers with the very same object.
        held = {identity: manager.get(identity) for identity in sorted(looked)}
        changed = {identity: each for identity, each in held.items() if each is not before.get(identity)}
        changed.update(
            (identity, None) for identity in changes if identity in before and identity not in looked
        )
        self.certificates = before.changed(changed)
        # What has gone goes on counting until all are looked at, a little sooner than they had to be.
        waiting = self._retries.failures.keys() | self._asking.open()
        good = (each for identity, each in held.items() if identity not in waiting)
        self._good = _good_between(good, _ALWAYS if looks_at_all else self._good or _ALWAYS)
        self._say_failing(manager, now)
        self._roots = roots
        self._looked()
        return Update(changed, roots[0], self.problems)

    def _look(
        self, manager: CertificateManager, work: Iterable[ServiceIdentity], now: datetime
    ) -> set[ServiceIdentity]:
        """Have issued what must be; return the identities that were looked at, those that came included."""
        looked, requests = set(work), dict[Need, Request]()
        failed, renewed, issued = Counter[str](), 0, manager.issued

        def fail(identity: ServiceIdentity, error: CertificateError) -> None:
            failed[failure_kind(error)] += 1
            self._retries.failed(identity, error, manager.get(identity), now)

        waits = self._waits(now)
        for identity in sorted(looked):
            need = identity, self._needed[identity]
            try:
                if manager.fitting(*need, now, patient=waits) is not None:
                    self._retries.done(identity)
                else:
                    requests[need] = manager.request(*need)
            except CertificateError as error:
                fail(identity, error)
        for (identity, dns_names), answer in self._asking.ask(
            requests, now, self._retries.failures.keys()
        ).items():
            if self._needed.get(identity) != dns_names:
                continue  # nobody needs it any more, or with other names
            looked.add(identity)
            if isinstance(answer, CertificateError):
                fail(identity, answer)
                continue
            renewed += manager.get(identity) is not None
            manager.take(identity, *answer)
            self._retries.done(identity)
        self._counted(IssuanceCounts(manager.issued - issued, renewed, failed))
        return looked

    def _say_failing(self, manager: CertificateManager, now: datetime) -> None:
        """Take note of what cannot be issued, and say once of each certificate that it runs out."""
        failures = sorted(self._retries.failures.items())
        self.problems = tuple(problem(identity, failure.error) for identity, failure in failures)
        self._again = min((failure.again for _, failure in failures), default=None)
        held = ((manager.get(identity), failure) for identity, failure in failures)
        self._failing = tuple((each, failure) for each, failure in held if each is not None)
        found = self.running_out(now)
        for each in found:
            if each.certificate.serial not in self._alarmed:
                until = each.certificate.not_after.isoformat()
                said = {"identity": str(each.certificate.identity), "until": until, "reason": each.error}
                _log.error("service certificate runs out: another cannot be issued", **said)
        self._alarmed = {each.certificate.serial for each in found}

    def _forget(self, manager: CertificateManager, identity: ServiceIdentity) -> None:
        manager.forget(identity)
        self._needed.pop(identity, None)
        self._retries.done(identity)

    def _all_good(self, now: datetime) -> bool:
        """Say whether no certificate is due; also one that is not valid yet would be (renewal.due)."""
        return self._good is not None and self._good[0] <= now < self._good[1]

    def _issuer_roots(self) -> tuple[bytes, bytes]:
        """Return the roots that are to be trusted, and those below which new certificates stand."""
        return self._issuer.trust_bundle(), self._issuer.signing_bundle()

    def _manager_for(self, validity: timedelta) -> CertificateManager:
        """Return the manager; another validity is that of certificates which are issued from now on."""
        self._validity = validity
        if self._manager is None:
            self._manager = CertificateManager(
                self._issuer, self._pairs, validity, self._jitter, self._making
            )
        self._manager.validity = validity
        return self._manager


def _good_between(
    held: Iterable[ServiceCertificate | None], good: tuple[datetime, datetime]
) -> tuple[datetime, datetime]:
    """Return between which of these moments none of these certificates is due."""
    begin, end = good
    there = [each for each in held if each is not None]
    return max((begin, *(each.not_before for each in there))), min((end, *map(renewal.renew_at, there)))
