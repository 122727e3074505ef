"""Service certificates signed by an issuer of cert-manager."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Self

import structlog

from certs.contract import CertificateRequest, Usage
from certs.errors import IssuerError
from certs.issuers.cert_manager.client import CertificateRequestClient
from certs.issuers.cert_manager.loop_thread import EventLoopThread
from certs.issuers.cert_manager.requests import request
from certs.issuers.cert_manager.responses import SignedCertificate, ends
from certs.issuers.exchanges import Exchanges
from certs.issuers.reference import IssuerReference
from certs.issuers.remote import RemoteIssuer, read_configured_roots
from certs.keys.bundle import TrustBundle
from certs.keys.pair import issue_pair
from certs.manager import service_names
from meshwright.kube.api import Api
from meshwright.kube.connection.connection import Connection
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain

_ANSWER_SECONDS: Final = 30.0
_PROBING: Final = timedelta(hours=1)
_PROBE: Final = ServiceAccountName("meshwright")
_AHEAD: Final = timedelta(seconds=30)
"""Tolerated lead of the signer's clock, because cert-manager does not back-date certificates."""

_log = structlog.get_logger("certs.issuers.cert_manager.issuer")


@dataclass(frozen=True, slots=True)
class CertificateRequestSettings:
    """The issuer, the namespace of its CertificateRequests, and the limit of one request in seconds.

    `roots` is a file with the roots, for issuers that report wrong roots or leave them out.
    """

    issuer: IssuerReference
    namespace: str
    seconds: float
    roots: Path | None = None


class CertManagerIssuer(RemoteIssuer):
    """An Issuer based on cert-manager's CertificateRequests.

    Blocking and thread-safe; the opener must close the issuer.
    """

    def __init__(
        self,
        connection: Connection,
        settings: CertificateRequestSettings,
        trust_domain: TrustDomain,
        known: TrustBundle,
    ) -> None:
        """Start with the roots in the configured file, else with `known`; send no request.

        Raises StateError for a file without roots.
        """
        self._settings = settings
        self._configured_roots = self._read_configured_roots()
        super().__init__(trust_domain, self._configured_roots or known)
        api = Api(connection, answer=_ANSWER_SECONDS)
        self._asking = CertificateRequestClient(api, settings.issuer, settings.namespace, settings.seconds)
        self._beside = EventLoopThread("cert-manager", api)

    @classmethod
    def open(
        cls,
        connection: Connection,
        settings: CertificateRequestSettings,
        trust_domain: TrustDomain,
        known: TrustBundle,
        now: datetime,
        exchanges: Exchanges,
    ) -> Self:
        """Start with the roots of the last certificate; without one, request a first certificate.

        Roots are visible only in signed certificates, so a certificate is requested and its key discarded.
        Raises IssuerError or StateError on failure, because the mesh would be without a trusted root.
        `exchanges.stop()` ends the request.
        """
        made = cls(connection, settings, trust_domain, known)
        exchanges.when_stopped(made.close)
        try:
            try:
                made.tend(now)
                made._show(now)
            except IssuerError as error:
                if not known.fingerprints:
                    raise
                _log.warning("issuer check failed; the saved roots stay in use", reason=str(error))
        except BaseException:
            made.close()
            raise
        return made

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Return a certificate signed by cert-manager. Raises IssuerError.

        The caller checks the certificate for differences from the request.
        """
        return self._beside.do(lambda: self._issued(request, now))

    def tend(self, now: datetime) -> None:
        """Read the roots' file, check the issuer, and remove requests left behind.

        Raises IssuerError, StateError; the known roots stay then.
        """
        if (given := self._read_configured_roots()) is not None:
            with self._lock:
                self._configured_roots = self._bundle = given
        self._beside.do(lambda: self._asking.look(now))

    def close(self) -> None:
        """Cancel all requests, and return afterwards; further requests raise IssuerError."""
        self._beside.close()

    def _show(self, now: datetime) -> None:
        """Have a certificate of one hour signed for the control plane, if the roots are unknown."""
        if not self._bundle.fingerprints:
            own = ServiceIdentity(Namespace(self._settings.namespace), _PROBE)
            issue_pair(self, Usage.SERVICE, service_names(own, (), self._trust_domain), _PROBING, now)

    async def _issued(self, wanted: CertificateRequest, now: datetime) -> bytes:
        loop = asyncio.get_running_loop()
        began = loop.time()

        def then() -> datetime:
            return now + timedelta(seconds=loop.time() - began)

        end = min(wanted.not_after, self._ends) if now < self._ends else wanted.not_after
        signed = await self._signed(wanted, end, then())
        if signed.leaf.not_valid_after_utc > self._reach(signed, then()):
            # cert-manager's CA issuer ignores its own end, which is known only now.
            signed = await self._signed(wanted, self._ends, then())
        ahead = signed.leaf.not_valid_before_utc - then()
        if timedelta(0) < ahead <= _AHEAD:
            await asyncio.sleep(ahead.total_seconds() + 0.01)
        return signed.chain_pem

    async def _signed(self, wanted: CertificateRequest, end: datetime, now: datetime) -> SignedCertificate:
        settings = self._settings
        until = now + timedelta(seconds=settings.seconds)
        return await self._asking.signed(request(wanted, settings.issuer, end - now, until))

    def _reach(self, signed: SignedCertificate, now: datetime) -> datetime:
        """Record the roots of a signed certificate, and return the end of the path to one of them."""
        roots = self._configured_roots or signed.roots
        if not roots.fingerprints:
            raise IssuerError(
                f"{self._settings.issuer} does not return a root with its certificates "
                "(`status.ca` is missing); set cert_manager_roots to a file with the root"
            )
        try:
            moment = ends(signed, roots, now)
        except ValueError as error:
            raise IssuerError(
                f"the certificate from {self._settings.issuer} cannot be used: {error}"
            ) from error
        with self._lock:
            self._bundle, self._ends = roots, moment
        return moment

    def _read_configured_roots(self) -> TrustBundle | None:
        file = self._settings.roots
        return None if file is None else read_configured_roots("cert_manager_roots", file)
