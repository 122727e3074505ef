"""Service certificates signed by a role of Vault's PKI."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

import structlog

from certs.contract import CertificateRequest
from certs.errors import IssuerError
from certs.issuers.remote import RemoteIssuer, read_configured_roots
from certs.issuers.vault.http import Answer, VaultApi, VaultRefused, mount, segment
from certs.issuers.vault.login import Login, Session
from certs.issuers.vault.responses import roots, signed
from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle
from meshwright.mesh.names import TrustDomain

_FORBIDDEN: Final = 403
_SAFE: Final = timedelta(seconds=60)
"""Margin before the end of Vault's CA: Vault's clock may be ahead, and the request takes time."""

_log = structlog.get_logger("certs.issuers.vault.issuer")


@dataclass(frozen=True, slots=True)
class VaultPki:
    """The PKI: mount, signing role, and a file with the roots for a mount without roots."""

    mount: str
    role: str
    roots: Path | None = None


class VaultIssuer(RemoteIssuer):
    """An Issuer based on a PKI of Vault. Blocking and thread-safe."""

    def __init__(
        self, api: VaultApi, login: Login, pki: VaultPki, trust_domain: TrustDomain, known: TrustBundle
    ) -> None:
        """Start with the roots in `known`, without a call to Vault."""
        super().__init__(trust_domain, known)
        self._api = api
        self._session = Session(api, login)
        self._pki = pki

    @classmethod
    def open(
        cls, api: VaultApi, login: Login, pki: VaultPki, trust_domain: TrustDomain, known: TrustBundle
    ) -> Self:
        """Start with the current roots, or with the `known` ones if the Vault does not answer.

        Raises IssuerError or StateError without known roots, because the mesh would be without a trusted
        root.
        """
        made = cls(api, login, pki, trust_domain, known)
        try:
            made.refresh()
        except IssuerError as error:
            if not known.fingerprints:
                raise
            _log.warning("issuer check failed; the saved roots stay in use", reason=str(error))
        return made

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Have a request signed by the role. Raises IssuerError, StateError.

        The names are sent in the CSR and separately, because the role's settings decide which are used. A
        role may shorten the lifetime; the caller checks the certificate for other differences.
        """
        seconds = max(int((self._end_to_request(request, now) - now).total_seconds()), 1)
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
        if not is_signed_by_bundle(chain_pem, self._bundle.pem):
            self.refresh()  # the CA has changed since the last refresh
        return chain_pem

    def refresh(self) -> None:
        """Read the current roots from Vault. Raises IssuerError, StateError; the known roots stay then."""
        trust_bundle, ends = self._fetch_roots()
        with self._lock:
            self._bundle, self._ends = trust_bundle, ends

    def tend(self, now: datetime) -> None:
        """Renew the login at Vault if due, and read the roots. Raises IssuerError, StateError."""
        self._session.token(now)
        self.refresh()

    def close(self) -> None:
        """Stop all calls to Vault at once, and revoke the token of our own login."""
        self._api.exchanges.stop()
        self._session.close()

    def _end_to_request(self, request: CertificateRequest, now: datetime) -> datetime:
        """Return the end of validity to request, before the end of the CA.

        Vault refuses, rather than shortens, a certificate outliving the CA.
        """
        latest = self._ends - _SAFE
        return min(request.not_after, latest) if now < latest else request.not_after

    def _fetch_roots(self) -> tuple[TrustBundle, datetime]:
        trust_bundle, ends = roots(self._api.call("GET", f"{mount(self._pki.mount)}/cert/ca_chain"))
        if self._pki.roots is not None:
            trust_bundle = trust_bundle.union(read_configured_roots("vault_roots", self._pki.roots))
        if not trust_bundle.fingerprints:
            raise IssuerError(
                f"PKI {self._pki.mount} of Vault {self._api.address} lacks a root in its chain; set "
                "vault_roots to a file with the root"
            )
        return trust_bundle, ends

    def _authorized(self, method: str, path: str, body: Answer, now: datetime) -> Answer:
        """Call Vault with a token; after a refusal (403), log in again and retry once."""
        token = self._session.token(now)
        try:
            return self._api.call(method, path, body, token)
        except VaultRefused as error:
            if error.status != _FORBIDDEN:
                raise
        self._session.drop(token)
        return self._api.call(method, path, body, self._session.token(now))
