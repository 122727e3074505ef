"""Service certificates of all needed identities: issuance, renewal and retries."""

import asyncio
import random
from collections import Counter, deque
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
from certs.manager import CertificateManager, Request, first
from certs.retries import Failure, Retries
from certs.state.stored_pair import Pairs
from meshwright.delivery.certificates.issuance_problems import ExpiringCertificate, failure_kind, problem
from meshwright.delivery.certificates.issuing import IssuingStrategy, Need, SequentialIssuing
from meshwright.delivery.certificates.turns import IssuerTurns
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.problems.problem import Problems
from xds.protocol.resources.layers import Layers

RENEWAL_SECONDS: Final = 30.0
"""Maximum seconds between two checks. A jump of the wall clock is noticed within this time."""

SHORTEST_SECONDS: Final = 1.0
"""Minimum seconds between two checks. Certificates that become due meanwhile are renewed together."""

_log = structlog.get_logger("delivery.certificates")

_ALWAYS: Final = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))

Needs = Mapping[ServiceIdentity, tuple[str, ...] | None]
"""Changed needs by identity: the DNS names of the certificate, or `None` if it is no longer needed."""


def spread() -> float:
    """Return a random number from -1 to 1, so certificates issued together end at different times."""
    return random.uniform(-1, 1)  # noqa: S311 - it spreads load, it protects nothing


@dataclass(frozen=True, slots=True)
class Update:
    """Result of an update: changed certificates (`None` for a removed one), the CA bundle, and problems."""

    changed: Mapping[ServiceIdentity, ServiceCertificate | None]
    trust_bundle: bytes = field(repr=False)
    problems: Problems


@dataclass(frozen=True, slots=True)
class IssuanceCounts:
    """Counts of one update: certificates issued, certificates renewed among them, and failures by kind.

    Example of `failed`: `{"issuer": 2}`; the kinds are the results of `failure_kind`.
    """

    issued: int
    renewed: int
    failed: Mapping[str, int]


class ServiceCertificates:
    """Service certificates of the needed identities, each issued and renewed in time.

    One caller at a time, in any thread. `counted` receives the counts of each update. After a failure an
    identity is retried with its own growing delay, and its present certificate stays in use. While
    `waits(now)` returns True the issuer is not ready, so a certificate that is merely due for renewal is not
    renewed. `turn` is the turn of this server among several ones to renew an identity's certificate, from 0.
    At a remote issuer the servers also take turns to replace a certificate for another reason, for example
    other DNS names.
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
        turn: Callable[[ServiceIdentity], int] = first,
    ) -> None:
        self._turn = turn
        self._issuer = issuer
        self._pairs = pairs
        self._counted = counted
        self._jitter = jitter
        self._making = making
        self._asking = asking or SequentialIssuing()
        self._waits = waits
        self._turns = IssuerTurns(turn if self._asking.is_remote else first)
        self._validity: timedelta | None = None
        # Made by the first update, because the validity is a setting of the mesh and is not known before.
        self._manager: CertificateManager | None = None
        self._needed: dict[ServiceIdentity, tuple[str, ...]] = {}
        self._retries = Retries(lambda: (1 + jitter()) / 2)
        self._good: tuple[datetime, datetime] | None = None
        self._roots = self._issuer_roots()
        self._failing: tuple[tuple[ServiceCertificate, Failure], ...] = ()
        self._alarmed: set[str] = set()
        self._looked: Callable[[], None] = lambda: None
        self._elsewhere: deque[ServiceIdentity] = deque()
        self._again: datetime | None = None
        self.problems: Problems = ()
        self.certificates: Layers[ServiceIdentity, ServiceCertificate] = Layers()

    def compare(self, identities: Iterable[ServiceIdentity]) -> None:
        """Have the next update compare certificates with the stored ones, which another server has changed.

        May be called from any thread.
        """
        self._elsewhere.extend(identities)

    def needs_work(self, now: datetime) -> bool:
        """Return whether `update` has work, for example a due certificate or changed roots.

        The other reasons are a new answer of the issuer, a due retry, and another stored certificate.

        May be called from any thread.
        """
        if self._manager is None:
            return False
        # A retry further away than LONGEST_RETRY means that the wall clock was set back; the retry is then
        # due at once.
        again = self._again is not None and not now < self._again <= now + renewal.LONGEST_RETRY
        other = self._roots != self._issuer_roots()
        arrived = bool(self._elsewhere) or self._asking.arrived()
        return again or other or arrived or not self._all_good(now)

    async def renewing(self, clock: Callable[[], datetime], changed: Callable[[], None]) -> None:
        """Call `changed` whenever `update` has work, for example a due renewal, until cancelled."""
        # The answers arrive in other threads, so the event is set by way of the loop.
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the server has ended, and the loop is closed
                loop.call_soon_threadsafe(woken.set)

        self._asking.when_arrived(wake)
        self._looked = wake
        if self._asking.arrived():  # answers that arrived before `when_arrived`
            woken.set()
        while True:
            try:
                async with asyncio.timeout(self._rest(clock())):
                    await woken.wait()
            except TimeoutError:
                looks = True
            else:
                # After an update by a wave only the time of the next check has changed.
                looks = self._asking.arrived()
            woken.clear()
            if looks and self.needs_work(clock()):
                changed()

    def _rest(self, now: datetime) -> float:
        """Return the seconds until the next check, from SHORTEST_SECONDS to RENEWAL_SECONDS.

        The value assumes that the clock does not jump.
        """
        ends = [] if self._good is None else [self._good[1]]
        ends += [] if self._again is None else [self._again]
        soonest = min(((end - now).total_seconds() for end in ends), default=RENEWAL_SECONDS)
        return min(max(soonest, SHORTEST_SECONDS), RENEWAL_SECONDS)

    def has_work(self, changes: Needs, validity: timedelta, now: datetime) -> bool:
        """Return whether `update` has work: changed needs or validity, a due renewal, or an answer."""
        return bool(changes) or validity != self._validity or self.needs_work(now)

    def running_out(self, now: datetime) -> tuple[ExpiringCertificate, ...]:
        """Return certificates that cannot be renewed and have less than a quarter of their validity left.

        May be called from any thread.
        """
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
        """Apply changed needs, renew due certificates, and return the result.

        Examines the identities in `changes`, identities whose retry is due, and identities whose answers have
        arrived. If a certificate may be due or the issuer's roots have changed, all needed identities are
        examined.
        """
        manager, roots = self._manager_for(validity), self._issuer_roots()
        for identity, dns_names in changes.items():
            if dns_names is None:
                self._forget(manager, identity)
            else:
                self._needed[identity] = dns_names
        looks_at_all = not self._all_good(now) or roots != self._roots
        again = self._retries.due(now) | self._turns.due(now)
        work = set(self._needed) if looks_at_all else again & self._needed.keys()
        # A full check must not ignore the delay of identities that have just failed.
        work = {identity for identity in work if not self._retries.waits(identity, now)}
        work |= self._needed.keys() & (changes.keys() | self._changed_elsewhere(manager))
        before = self.certificates
        looked = self._look(manager, work, now)
        # The manager returns the same object until a new certificate is taken, so identity of objects shows a
        # change.
        held = {identity: manager.get(identity) for identity in sorted(looked)}
        changed = {
            identity: certificate
            for identity, certificate in held.items()
            if certificate is not before.get(identity)
        }
        # The certificate of an identity that is not needed any more is removed.
        changed.update(
            (identity, None) for identity in changes if identity in before and identity not in looked
        )
        self.certificates = before.changed(changed)
        # Certificates that were dropped still bound the interval until all identities are examined: the next
        # full check then comes a little early, and never late.
        waiting = self._retries.failures.keys() | self._asking.open() | self._turns.waiting
        good = (certificate for identity, certificate in held.items() if identity not in waiting)
        self._good = _good_between(good, _ALWAYS if looks_at_all else self._good or _ALWAYS, self._turn)
        self._report_failures(manager, now)
        self._roots = roots
        self._looked()
        return Update(changed, roots[0], self.problems)

    def _changed_elsewhere(self, manager: CertificateManager) -> set[ServiceIdentity]:
        """Return the identities whose stored certificate was changed by another server, for comparison."""
        result = set[ServiceIdentity]()
        while self._elsewhere:
            result.add(self._elsewhere.popleft())
        for identity in result:
            manager.compare(identity)
        return result

    def _look(
        self, manager: CertificateManager, work: Iterable[ServiceIdentity], now: datetime
    ) -> set[ServiceIdentity]:
        """Request missing and due certificates; return the examined identities.

        These include identities with a late answer to an earlier request.
        """
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
                    self._done(identity)
                elif not self._turns.waits(identity, manager.get(identity), now):
                    requests[need] = manager.request(*need)
            except CertificateError as error:
                fail(identity, error)
        for (identity, dns_names), answer in self._asking.ask(
            requests, now, self._retries.failures.keys()
        ).items():
            if self._needed.get(identity) != dns_names:
                continue  # the identity is not needed any more, or needs other DNS names
            looked.add(identity)
            if isinstance(answer, CertificateError):
                fail(identity, answer)
                continue
            renewed += answer.is_new and manager.get(identity) is not None
            manager.take(identity, answer)
            self._done(identity)
        self._counted(IssuanceCounts(manager.issued - issued, renewed, failed))
        return looked

    def _report_failures(self, manager: CertificateManager, now: datetime) -> None:
        """Update the problems of failed issuances, and log each certificate close to expiry once."""
        failures = sorted(self._retries.failures.items())
        self.problems = tuple(problem(identity, failure.error) for identity, failure in failures)
        times = (self._turns.next, *(failure.again for _, failure in failures))
        self._again = min(filter(None, times), default=None)
        held = ((manager.get(identity), failure) for identity, failure in failures)
        self._failing = tuple(
            (certificate, failure) for certificate, failure in held if certificate is not None
        )
        certificates = self.running_out(now)
        for certificate in certificates:
            if certificate.certificate.serial not in self._alarmed:
                until = certificate.certificate.not_after.isoformat()
                fields = {
                    "identity": str(certificate.certificate.identity),
                    "until": until,
                    "reason": certificate.error,
                }
                _log.error("service certificate expires soon, and its renewal fails", **fields)
        # Only certificates that still expire: a renewed one raises a new alarm if it expires later.
        self._alarmed = {certificate.certificate.serial for certificate in certificates}

    def _forget(self, manager: CertificateManager, identity: ServiceIdentity) -> None:
        manager.forget(identity)
        self._needed.pop(identity, None)
        self._done(identity)

    def _done(self, identity: ServiceIdentity) -> None:
        self._retries.done(identity)
        self._turns.done(identity)

    def _all_good(self, now: datetime) -> bool:
        """Return whether no certificate is due. One that is not valid yet is due too (`renewal.due`)."""
        return self._good is not None and self._good[0] <= now < self._good[1]

    def _issuer_roots(self) -> tuple[bytes, bytes]:
        """Return two PEM bundles: the CA certificates to trust, and those for new certificates."""
        return self._issuer.trust_bundle(), self._issuer.signing_bundle()

    def _manager_for(self, validity: timedelta) -> CertificateManager:
        """Return the certificate manager, and set the validity of certificates issued from now on."""
        self._validity = validity
        if self._manager is None:
            self._manager = CertificateManager(
                self._issuer, self._pairs, validity, self._jitter, self._making, self._turn
            )
        self._manager.validity = validity
        return self._manager


def _good_between(
    certificates: Iterable[ServiceCertificate | None],
    good: tuple[datetime, datetime],
    turn: Callable[[ServiceIdentity], int],
) -> tuple[datetime, datetime]:
    """Return the part of the interval `good` in which no held certificate is due for renewal."""
    begin, end = good
    there = [certificate for certificate in certificates if certificate is not None]
    return max((begin, *(certificate.not_before for certificate in there))), min(
        (end, *(renewal.renew_at(certificate, turn(certificate.identity)) for certificate in there))
    )
