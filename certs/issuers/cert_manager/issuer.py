"""Service certificates signed by what cert-manager knows as an issuer."""

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
from certs.issuers.remote import RemoteIssuer, given_roots
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
"""So far ahead of ours may the clock of who signs be, by which a certificate begins: it is not back-dated."""

_log = structlog.get_logger("certs.issuers.cert_manager.issuer")


@dataclass(frozen=True, slots=True)
class CertificateRequestSettings:
    """Which issuer signs; where CertificateRequests are made, and how long one may take.

    `roots` is a file with its roots, where what it says of them is not to be believed, or it says nothing.
    """

    issuer: IssuerReference
    namespace: str
    seconds: float
    roots: Path | None = None


class CertManagerIssuer(RemoteIssuer):
    """An Issuer that asks by CertificateRequests; blocks, and may be used from several threads at once.

    Who opens it closes it.
    """

    def __init__(
        self,
        connection: Connection,
        asked: CertificateRequestSettings,
        trust_domain: TrustDomain,
        known: TrustBundle,
    ) -> None:
        """Begin with roots that are known, without asking. Raises StateError where a file has none."""
        self._asked = asked
        self._given = self._read_given()
        super().__init__(trust_domain, self._given or known)
        api = Api(connection, answer=_ANSWER_SECONDS)
        self._asking = CertificateRequestClient(api, asked.issuer, asked.namespace, asked.seconds)
        self._beside = EventLoopThread("cert-manager", api)

    @classmethod
    def open(
        cls,
        connection: Connection,
        asked: CertificateRequestSettings,
        trust_domain: TrustDomain,
        known: TrustBundle,
        now: datetime,
        exchanges: Exchanges,
    ) -> Self:
        """Begin with the roots it had when it last signed; where it never has, have something signed.

        Only what was signed shows the roots: a certificate whose key is forgotten at once. Raises
        IssuerError, StateError where it has never signed and cannot now: nobody would know whom to trust.
        A stop of `exchanges` ends it.
        """
        made = cls(connection, asked, trust_domain, known)
        exchanges.when_stopped(made.close)
        try:
            try:
                made.tend(now)
                made._show(now)
            except IssuerError as error:
                if not known.fingerprints:
                    raise
                _log.warning("issuer not as it should be: its roots are those of before", reason=str(error))
        except BaseException:
            made.close()
            raise
        return made

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Have a request signed; raises IssuerError. What is other than asked for, whoever asked finds."""
        return self._beside.do(lambda: self._issued(request, now))

    def tend(self, now: datetime) -> None:
        """Read its roots' file, look whether it can sign, and remove what was left behind.

        Raises IssuerError, StateError, and then what is known stays.
        """
        if (given := self._read_given()) is not None:
            with self._lock:
                self._given = self._bundle = given
        self._beside.do(lambda: self._asking.look(now))

    def close(self) -> None:
        """End what is on its way, and return once that is done; nothing can be signed after."""
        self._beside.close()

    def _show(self, now: datetime) -> None:
        """Have it sign, if it was never seen to: a certificate of the control plane's own, for an hour."""
        if not self._bundle.fingerprints:
            own = ServiceIdentity(Namespace(self._asked.namespace), _PROBE)
            issue_pair(self, Usage.SERVICE, service_names(own, (), self._trust_domain), _PROBING, now)

    async def _issued(self, wanted: CertificateRequest, now: datetime) -> bytes:
        loop = asyncio.get_running_loop()
        began = loop.time()

        def then() -> datetime:
            return now + timedelta(seconds=loop.time() - began)

        end = min(wanted.not_after, self._ends) if now < self._ends else wanted.not_after
        signed = await self._signed(wanted, end, then())
        if signed.leaf.not_valid_after_utc > self._reach(signed, then()):
            # cert-manager's CA issuer does not mind its own end: it is known now.
            signed = await self._signed(wanted, self._ends, then())
        ahead = signed.leaf.not_valid_before_utc - then()
        if timedelta(0) < ahead <= _AHEAD:
            await asyncio.sleep(ahead.total_seconds() + 0.01)
        return signed.chain_pem

    async def _signed(self, wanted: CertificateRequest, end: datetime, now: datetime) -> SignedCertificate:
        told = self._asked
        until = now + timedelta(seconds=told.seconds)
        return await self._asking.signed(request(wanted, told.issuer, end - now, until))

    def _reach(self, signed: SignedCertificate, now: datetime) -> datetime:
        """Take note of the roots of what was signed, and return when its way to one of them ends."""
        roots = self._given or signed.roots
        if not roots.fingerprints:
            raise IssuerError(
                f"{self._asked.issuer} shows no root with what it signs (`status.ca`): "
                "give it as cert_manager_roots"
            )
        try:
            found = ends(signed, roots, now)
        except ValueError as error:
            raise IssuerError(f"what {self._asked.issuer} has signed cannot be used: {error}") from error
        with self._lock:
            self._bundle, self._ends = roots, found
        return found

    def _read_given(self) -> TrustBundle | None:
        file = self._asked.roots
        return None if file is None else given_roots("cert_manager_roots", file)
