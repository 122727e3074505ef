"""Service certificates for what the catalog needs, kept in step with the mesh's configuration."""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from certs import renewal
from certs.errors import CertificateError
from certs.issuers.contract import Issuer
from certs.manager import CertificateManager
from certs.material import ServiceCertificate
from certs.stored import Pairs
from mesh.identity import ServiceIdentity
from mesh.kinds import SERVICE_ACCOUNT
from mesh.names import Namespace
from mesh.objects import ObjectKey
from mesh.origins import FromSource
from mesh.problems import Problem, Problems, Severity
from xds.protocol.layers import Layers

RENEWAL_SECONDS: Final = 30.0
"""How often certificates are looked at; a wall clock that jumps is noticed within that."""


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


class ServiceCertificates:
    """Issues what is needed and forgets what is not; for one caller at a time, in whatever thread.

    `issued` is told how many certificates were made anew.
    """

    def __init__(
        self,
        issuer: Issuer,
        pairs: Pairs,
        issued: Callable[[int], None],
        jitter: Callable[[], float] = spread,
    ) -> None:
        self._issuer = issuer
        self._pairs = pairs
        self._issued = issued
        self._jitter = jitter
        self._validity: timedelta | None = None
        self._manager: CertificateManager | None = None
        self._needed: dict[ServiceIdentity, tuple[str, ...]] = {}
        self._problems: dict[ServiceIdentity, Problem] = {}
        self._good: tuple[datetime, datetime] | None = None
        self._roots = self._issuer_roots()
        self.certificates: Layers[ServiceIdentity, ServiceCertificate] = Layers()

    def needs_work(self, now: datetime) -> bool:
        """Say whether a certificate is due or could not be issued when it was needed, or roots are others."""
        return (
            bool(self._problems)
            or self._roots != self._issuer_roots()
            or (self._manager is not None and not self._all_good(now))
        )

    async def renewing(self, clock: Callable[[], datetime], changed: Callable[[], None]) -> None:
        """Call `changed` whenever one is due, or could not be issued before, until cancelled."""
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            if self.needs_work(clock()):
                changed()

    def has_work(self, changes: Needs, validity: timedelta, now: datetime) -> bool:
        """Say whether `update` with these arguments would do anything."""
        return bool(changes) or validity != self._validity or self.needs_work(now)

    def update(
        self,
        changes: Needs,
        validity: timedelta,
        now: datetime,
    ) -> Update:
        """Take changed needs, and renew what is due of all that is needed.

        Looks at these identities, at those that failed before, and at all when one may be due.
        """
        manager, roots = self._manager_for(validity), self._issuer_roots()
        for identity, dns_names in changes.items():
            if dns_names is None:
                self._forget(manager, identity)
            else:
                self._needed[identity] = dns_names
        work = self._needed.keys() & (changes.keys() | self._problems.keys())
        looks_at_all = manager.look() or not self._all_good(now)
        if looks_at_all:
            work = set(self._needed)
        before, issued = self.certificates, manager.issued
        found = {identity: self._ensured(manager, identity, now) for identity in sorted(work)}
        # By identity: as long as nothing is new, the manager answers with the very same object.
        changed = {identity: held for identity, held in found.items() if held is not before.get(identity)}
        changed.update(
            (identity, None) for identity in changes if identity in before and identity not in work
        )
        self.certificates = before.changed(changed)
        # What has gone goes on counting until all are looked at, a little sooner than they had to be.
        self._good = _good_between(found.values(), _ALWAYS if looks_at_all else self._good or _ALWAYS)
        self._issued(manager.issued - issued)
        self._roots = roots
        problems = tuple(self._problems[identity] for identity in sorted(self._problems))
        return Update(changed, roots[0], problems)

    def _ensured(
        self, manager: CertificateManager, identity: ServiceIdentity, now: datetime
    ) -> ServiceCertificate | None:
        self._problems.pop(identity, None)
        try:
            return manager.ensure(identity, self._needed[identity], now)
        except CertificateError as error:
            self._problems[identity] = _problem(identity, error)
            return manager.get(identity)

    def _forget(self, manager: CertificateManager, identity: ServiceIdentity) -> None:
        manager.forget(identity)
        self._needed.pop(identity, None)
        self._problems.pop(identity, None)

    def _all_good(self, now: datetime) -> bool:
        """Say whether no certificate is due; also one that is not valid yet would be (renewal.due)."""
        return self._good is not None and self._good[0] <= now < self._good[1]

    def _issuer_roots(self) -> tuple[bytes, bytes]:
        """Return the roots that are to be trusted, and those below which new certificates stand."""
        return self._issuer.trust_bundle(), self._issuer.signing_bundle()

    def _manager_for(self, validity: timedelta) -> CertificateManager:
        """Return the manager for this validity; another one begins with the stored certificates."""
        if self._manager is None or validity != self._validity:
            self._manager = CertificateManager(self._issuer, self._pairs, validity, self._jitter)
            self._validity, self._good = validity, None
        return self._manager


def _good_between(
    held: Iterable[ServiceCertificate | None], good: tuple[datetime, datetime]
) -> tuple[datetime, datetime]:
    """Return between which of these moments none of these certificates is due."""
    begin, end = good
    there = [each for each in held if each is not None]
    return max((begin, *(each.not_before for each in there))), min((end, *map(renewal.renew_at, there)))


def _problem(identity: ServiceIdentity, error: CertificateError) -> Problem:
    return Problem(
        code="certificate-not-issued",
        severity=Severity.ERROR,
        origin=FromSource("certificates"),
        key=ObjectKey(SERVICE_ACCOUNT, Namespace(identity.namespace), identity.service_account),
        expected=str(error),
    )
