"""Service certificates signed by a role of a Vault's PKI."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

import structlog

from certs.contract import CertificateRequest
from certs.errors import IssuerError
from certs.issuers.remote import RemoteIssuer, given_roots
from certs.issuers.vault.http import Answer, VaultApi, VaultRefused, mount, segment
from certs.issuers.vault.login import Login, Session
from certs.issuers.vault.responses import roots, signed
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import stands_below
from meshwright.mesh.names import TrustDomain

_FORBIDDEN: Final = 403
_SAFE: Final = timedelta(seconds=60)
"""So long before its CA's end a certificate ends: its clock may be ahead of ours, and the way is long."""

_log = structlog.get_logger("certs.issuers.vault.issuer")


@dataclass(frozen=True, slots=True)
class VaultPki:
    """Which PKI: its mount, the role that signs, and a file with its roots where it has none itself."""

    mount: str
    role: str
    roots: Path | None = None


class VaultIssuer(RemoteIssuer):
    """An Issuer that asks a Vault; blocks, and may be used from several threads at once."""

    def __init__(
        self, api: VaultApi, login: Login, pki: VaultPki, trust_domain: TrustDomain, known: TrustBundle
    ) -> None:
        """Begin with roots that are known, without asking."""
        super().__init__(trust_domain, known)
        self._api = api
        self._session = Session(api, login)
        self._pki = pki

    @classmethod
    def open(
        cls, api: VaultApi, login: Login, pki: VaultPki, trust_domain: TrustDomain, known: TrustBundle
    ) -> Self:
        """Begin with its roots of now, or, where it cannot be asked, with those it had when it could.

        Raises IssuerError, StateError where it has never been asked: nobody would know whom to trust.
        """
        made = cls(api, login, pki, trust_domain, known)
        try:
            made.refresh()
        except IssuerError as error:
            if not known.fingerprints:
                raise
            _log.warning("issuer not as it should be: its roots are those of before", reason=str(error))
        return made

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Have a request signed by the role; raises IssuerError, StateError.

        Names are asked for twice, in the CSR and beside it: a role says which it reads. A role may shorten
        what is asked for; what it adds or leaves out, whoever asked finds.
        """
        seconds = max(int((self._asked_end(request, now) - now).total_seconds()), 1)
        names = request.names
        body: Answer = {
            "csr": request.csr_pem.decode("ascii"),
            "common_name": names.common_name,
            "exclude_cn_from_sans": True,
            "uri_sans": ",".join(names.uris),
            "alt_names": ",".join(names.dns_names),
            "ip_sans": ",".join(names.ip_addresses),
            "ttl": f"{seconds}s",
            "format": "pem",
        }
        path = f"{mount(self._pki.mount)}/sign/{segment(self._pki.role)}"
        chain_pem = signed(self._authorized("POST", path, body, now))
        if not stands_below(chain_pem, self._bundle.pem):
            self.refresh()  # another CA signs there than when it was asked last
        return chain_pem

    def refresh(self) -> None:
        """Ask for its roots; raises IssuerError, StateError, and then those that are known stay."""
        found, ends = self._asked_roots()
        with self._lock:
            self._bundle, self._ends = found, ends

    def tend(self, now: datetime) -> None:
        """Renew the login if it is due, and ask for the roots. Raises IssuerError, StateError."""
        self._session.token(now)
        self.refresh()

    def close(self) -> None:
        """Ask nothing more, end at once what is being asked, and have the token of our own login end."""
        self._api.exchanges.stop()
        self._session.close()

    def _asked_end(self, request: CertificateRequest, now: datetime) -> datetime:
        """Return until when to ask for: a Vault refuses what would outlive its CA, and shortens it not."""
        latest = self._ends - _SAFE
        return min(request.not_after, latest) if now < latest else request.not_after

    def _asked_roots(self) -> tuple[TrustBundle, datetime]:
        found, ends = roots(self._api.call("GET", f"{mount(self._pki.mount)}/cert/ca_chain"))
        if self._pki.roots is not None:
            found = found.union(given_roots("vault_roots", self._pki.roots))
        if not found.fingerprints:
            raise IssuerError(
                f"PKI {self._pki.mount} of Vault {self._api.address} has no root in its chain: "
                "give one as vault_roots"
            )
        return found, ends

    def _authorized(self, method: str, path: str, body: Answer, now: datetime) -> Answer:
        """Call with a token; one that is refused may have ended or been revoked, and is tried anew once."""
        token = self._session.token(now)
        try:
            return self._api.call(method, path, body, token)
        except VaultRefused as error:
            if error.status != _FORBIDDEN:
                raise
        self._session.drop(token)
        return self._api.call(method, path, body, self._session.token(now))
