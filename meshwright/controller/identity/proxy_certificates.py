"""Proxy certificates for commands, over the socket or without a server."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from certs.custody import AuthorityWithLedger, Custody, begun, opened
from certs.keys.material import ProxyCertificate, SignedProxy
from certs.keys.signing_request import SigningRequest
from certs.ledger.contract import Judge
from certs.ledger.entry import LedgerEntry
from certs.lifetimes import ProxyTerms
from certs.proxy import issue_proxy, sign_proxy
from meshwright.admin.http.commands import ProxyRequest
from meshwright.controller.errors import MissingAuthority, StartupError
from meshwright.controller.process import lock
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain

_LEFT: Final = frozenset({"lost+found", ".ca.new"})
"""Files allowed in an otherwise empty state directory: of its file system, or of an interrupted start."""


class ProxyIssuing:
    """Issuing and revoking with one CA and ledger; safe from several threads.

    `made` is True if the CA is new; `opened_authority` describes its owner.
    """

    def __init__(
        self,
        authority: AuthorityWithLedger,
        clock: Callable[[], datetime],
        terms: Callable[[], ProxyTerms],
        issued: Callable[[], None],
    ) -> None:
        self._issuer = authority.authority
        self.opened_authority = authority.opened_authority
        self._ledger = authority.ledger
        self._first = authority.first
        self.made = authority.made
        self._clock = clock
        self._terms = terms
        self._issued = issued

    def issue(self, request: ProxyRequest) -> ProxyCertificate:
        """Issue a certificate; raise CertificateError."""
        return self._issue(request.name, requested_terms(request, self._terms()))

    def issue_for(self, name: ProxyName) -> ProxyCertificate:
        """Issue a proxy certificate with the lifetimes in the settings; raise CertificateError."""
        return self._issue(name, self._terms())

    def _issue(self, name: ProxyName, terms: ProxyTerms) -> ProxyCertificate:
        within, term = terms.claim_within, terms.term
        issued = issue_proxy(self._issuer, self._ledger, name, terms.validity, self._clock(), within, term)
        self._first.note(self._ledger)
        self._issued()
        return issued

    def sign(
        self,
        name: ProxyName,
        request: SigningRequest,
        validity: timedelta | None,
        joined_by: str,
        judge: Judge,
    ) -> SignedProxy:
        """Sign a request, whose key never leaves the machine.

        Raise CertificateError and the errors of `judge`.
        """
        terms, now = self._terms().asking(validity), self._clock()
        arguments = terms.claim_within, terms.term, joined_by, judge
        signed = sign_proxy(self._issuer, self._ledger, name, request, terms.validity, now, *arguments)
        self._first.note(self._ledger)
        self._issued()
        return signed

    def revoke(self, serial: str, why: str = "") -> LedgerEntry:
        """Revoke a certificate with a reason; raise CertificateError."""
        return self._ledger.revoke(serial, self._clock(), why)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return all entries of the ledger; raise StateError."""
        return self._ledger.entries()

    def trust_bundle(self) -> bytes:
        """Return the CA certificates as PEM."""
        return self._issuer.trust_bundle()

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the mesh's trust domain."""
        return self._issuer.trust_domain

    @property
    def changes_roots(self) -> bool:
        """Return whether a change of the root is in progress."""
        return bool(self._issuer.other)

    def replaces(self, certificate_pem: bytes) -> bool:
        """Return whether the signer of a certificate is the non-signing CA of a root rotation."""
        return self.changes_roots and self._issuer.signer_of(certificate_pem) != self._issuer.fingerprint


def requested_terms(request: ProxyRequest, otherwise: ProxyTerms) -> ProxyTerms:
    """Return the requested lifetimes of a proxy certificate, with missing ones from `otherwise`."""
    validity, within = (
        None if days is None else timedelta(days=days) for days in (request.validity_days, request.claim_days)
    )
    return otherwise.asking(validity, within)


@contextlib.contextmanager
def without_server(
    state: Path,
    trust_domain: TrustDomain,
    clock: Callable[[], datetime],
    terms: ProxyTerms,
    *,
    shared: bool = False,
    new: bool = False,
    custody: Custody | None = None,
) -> Iterator[ProxyIssuing]:
    """Open a state directory without a running server, while the context lasts.

    The directory is only created if `new` is True, and only in an empty place, because a mistyped path must
    not become a new mesh. `custody` describes the place of the keys. Raises StartupError if a server uses the
    directory, and CertificateError if it is unusable.
    """
    # Before the lock, because `lock.prepare` would create the directory.
    if not begun(state):
        _require_room(state, new=new)
    lock.prepare(state, shared=shared)
    with (
        lock.hold_lock(state),
        opened(state, trust_domain, clock(), custody=custody or Custody()) as authority,
    ):
        yield ProxyIssuing(authority, clock, lambda: terms, lambda: None)


def _require_room(state: Path, *, new: bool) -> None:
    """Raise StartupError unless a new CA is allowed (`new`) and this state directory has room for one."""
    if not new:
        raise MissingAuthority(f"{state} has neither a CA nor issued certificates")
    try:
        others = sorted(
            path.name for path in state.iterdir() if not path.match("*.lock") and path.name not in _LEFT
        )
    except OSError:
        return  # missing or unreadable; the lock reports the cause
    if others:
        raise StartupError(
            f"{state} lacks a CA, but has other files ({', '.join(others[:3])}): give the state "
            "directory, or for a new mesh an empty or new directory"
        )
