"""An issuer with its predecessors, recorded in a store so that they survive a restart."""

import enum
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Final

import structlog

from certs.contract import CertificateRequest, Issuer
from certs.errors import IssuerError, StateError
from certs.issuers.succession import SETTLING, FormerIssuer, Succession, followed
from certs.issuers.succession_store import SuccessionStore
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from meshwright.mesh.names import TrustDomain
from meshwright.tls.pem import first_in

_AGENTS_SETTLING: Final = timedelta(hours=1)

_log = structlog.get_logger("certs.issuers.succeeding")


class Role(enum.Enum):
    """Role of an issuer in the mesh: SERVICES for service certificates, CHANNEL for the authority itself.

    `signs` describes the certificates in messages.
    """

    SERVICES = "service certificates"
    CHANNEL = "proxy certificates"

    @property
    def signs(self) -> str:
        """Return a description of the signed certificates, for example `service certificates`."""
        return self.value

    @property
    def settling(self) -> timedelta:
        """Return the time to distribute a new root: sidecars get it at once, agents only when they ask."""
        return SETTLING if self is Role.SERVICES else _AGENTS_SETTLING


class SucceedingIssuer:
    """An Issuer that also trusts certificates of its predecessors.

    `name` is unique. `before` is the recorded succession, or the presumed one without a record. `ends`
    returns the end of the last stored certificate, None without any. Certificates signed since the start
    count too, although never stored, or replaced by a certificate with an earlier end.
    With `drops` the inner issuer decides when a root of its own is not trusted any more. `look` is for one
    caller at a time; any thread may call the rest.
    """

    def __init__(
        self,
        inner: Issuer,
        name: str,
        succession_store: SuccessionStore,
        before: Succession,
        ends: Callable[[], datetime | None],
        now: datetime,
        *,
        drops: bool,
        role: Role = Role.SERVICES,
    ) -> None:
        """Record the issuer `name` if new. Raises StateError if the record cannot be written."""
        self._inner = inner
        self._name = name
        self._role = role
        self._succession_store = succession_store
        self._ends = ends
        self._drops = drops
        self._recorded = succession_store.read()
        self._succession = before
        self._lock = threading.Lock()
        self._ending = threading.Lock()
        self._last_end: datetime | None = None
        try:
            self.look(now)
        except StateError:
            if (name, TrustBundle.from_pems([inner.trust_bundle()])) != (before.name, before.roots):
                raise

    # Only expired predecessors could not be removed; the next look reports the error.

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain of the certified identities."""
        return self._inner.trust_domain

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Have the current issuer sign.

        Raises IssuerError also if the issuer signed with a root that is new since the last look, because no
        proxy trusts this root yet, and the certificate would be used at once.
        """
        chain_pem, noted = self._inner.issue(request, now), self._succession
        self._note_end(chain_pem)
        if self._is_other(noted) and not is_signed_by_bundle(chain_pem, noted.trusted.pem):
            raise IssuerError(
                f"{self._name} now signs with another root, which proxies do not trust yet; the "
                "server tries again after it has published the root"
            )
        return chain_pem

    def _note_end(self, chain_pem: bytes) -> None:
        with suppress(ValueError), self._ending:  # the caller refuses a certificate that cannot be parsed
            end = first_in(chain_pem).not_valid_after_utc
            self._last_end = end if self._last_end is None else max(end, self._last_end)

    def trust_bundle(self) -> bytes:
        """Return the own roots, the roots of predecessors, and roots dropped since the last look."""
        return self._with_others(self._inner.trust_bundle())

    def signing_bundle(self) -> bytes:
        """Return the same for the signing roots: certificates of a predecessor are replaced only when due."""
        return self._with_others(self._inner.signing_bundle())

    @property
    def formers(self) -> tuple[FormerIssuer, ...]:
        """Return the predecessors with roots that sidecars still trust."""
        return self._succession.formers

    def settled(self) -> datetime:
        """Return the time from which on all sidecars have the signing roots."""
        return self._succession.settled

    def waits(self, now: datetime) -> bool:
        """Return whether a connected sidecar may not trust the signing roots yet."""
        noted = self._succession
        return now < noted.settled or not noted.is_acknowledged

    def awaited(self, now: datetime) -> TrustBundle | None:
        """Return the roots to await in all connected sidecars; None if all have them, or before `settled`."""
        noted = self._succession
        return None if noted.is_acknowledged or now < noted.settled else noted.roots

    def have_taken(self, roots: TrustBundle) -> None:
        """Record that all connected sidecars have acknowledged these roots.

        Raises StateError, without a change.
        """

        def heard(before: Succession) -> Succession:
            return replace(before, is_acknowledged=True) if before.roots == roots else before

        with self._lock:
            if self._record(heard):
                _log.info("connected sidecars have all acknowledged the issuer's roots", issuer=self._name)

    def look(self, now: datetime) -> None:
        """Record new roots of the issuer, and remove expired predecessors.

        Take over what other servers have recorded before. Raises StateError, without a change.
        """
        with self._lock:
            before, roots = self._succession, TrustBundle.from_pems([self._inner.trust_bundle()])
            if self._succession_store.is_shared:
                self._take_over()
            self._record(partial(self._looked, roots, now, before))
            if self._succession != before:
                _log_change(before, self._succession, self._role)

    def _take_over(self) -> None:
        there = self._succession_store.read()
        if there is not None and there != self._recorded:
            self._recorded = self._succession = there

    def _looked(self, roots: TrustBundle, now: datetime, own: Succession, before: Succession) -> Succession:
        """Return the succession after a look; `own` is the last one that this server has known."""
        if before.roots != own.roots and self._last_end is not None:
            # The server that recorded the change does not know certificates that were not stored here.
            before = before.lasting_until(own.roots, self._last_end)
        if (self._name, roots) == (before.name, before.roots):
            return before.lasting(now)
        return followed(
            before,
            self._name,
            roots,
            max(filter(None, (self._ends(), self._last_end)), default=None),
            now,
            drops=self._drops,
            settling=self._role.settling,
        )

    def _record(self, change: Callable[[Succession], Succession]) -> bool:
        """Record the result of `change`; return whether the succession has changed.

        If another server has recorded another succession first, `change` is applied to that one. An unchanged
        succession is not recorded, because a mesh that only had its own CA needs no record.
        """
        before = self._succession
        while (after := change(self._succession)) != self._succession:
            self._recorded = there = self._succession_store.replace(self._recorded, after)
            self._succession = there
            if there == after:
                break
        return self._succession != before

    def _with_others(self, bundle: bytes) -> bytes:
        noted = self._succession  # read once: a look may exchange it meanwhile
        others = tuple(former_issuer.roots.pem for former_issuer in noted.formers)
        if self._is_other(noted):
            others += (noted.roots.pem,)
        return _united((bundle, *others)) if others else bundle

    def _is_other(self, noted: Succession) -> bool:
        """Return whether the issuer signs below other roots than recorded; both count as own until a look."""
        return not self._drops and self._inner.trust_bundle() != noted.roots.pem


@lru_cache(maxsize=4)
def _united(pems: tuple[bytes, ...]) -> bytes:
    """Return the roots in all these PEM texts as one text.

    The result is cached, because the function is called for each identity.
    """
    return TrustBundle.from_pems(pems).pem


def _log_change(before: Succession, succession: Succession, role: Role) -> None:
    if before.name and before.name != succession.name:
        _log.warning(f"issuer of {role.signs} replaced", issuer=succession.name, before=before.name)
    if len(succession.formers) > len(before.formers):
        until = succession.formers[-1].until.isoformat()
        _log.warning(
            "roots of the previous issuer stay trusted until its last certificate expires", until=until
        )
    elif not succession.trusted.holds(before.trusted):
        _log.info("roots of a former issuer removed: its last certificate has expired")
