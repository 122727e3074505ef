"""Certificate of the drivers' servers, and the renewal."""

import asyncio
from collections.abc import Callable
from datetime import datetime

import structlog

from certs.contract import Issuer
from certs.errors import CertificateError
from certs.keys.material import ServerCertificate
from certs.renewal import look_again_after
from certs.server import ads_server_certificate
from certs.state.stored_pair import Pairs
from xds.server.tls import TlsIdentity

_log = structlog.get_logger("controller.server_tls")


class ServerTls:
    """Server certificate with which the drivers' servers identify themselves to proxies."""

    def __init__(
        self,
        issuer: Issuer,
        pairs: Pairs,
        hosts: tuple[str, ...],
        now: datetime,
        patient: Callable[[datetime], bool] = lambda _: False,
    ) -> None:
        """Make the first certificate; raise CertificateError if none can be made.

        `patient` returns whether agents may not know the present CA yet.
        """
        self._patient = patient
        self._issuer = issuer
        self._pairs = pairs
        self._hosts = hosts
        self._logged_error = ""
        self._shown, self._identity = self._made(now)

    def identity(self) -> TlsIdentity:
        """Return the present server certificate with key and roots; may be called from any thread."""
        return self._identity

    async def renewing(self, clock: Callable[[], datetime]) -> None:
        """Renew the certificate when due, until cancelled. After an error the old one stays."""
        while True:
            await asyncio.sleep(look_again_after(self._shown, clock()).total_seconds())
            await self.look(clock())

    async def look(self, now: datetime) -> None:
        """Renew the certificate if due or if the CA has changed; log an error once."""
        try:
            self._shown, self._identity = await asyncio.to_thread(self._made, now)
        except CertificateError as error:
            if str(error) != self._logged_error:
                _log.error("server certificate not renewed", reason=str(error))
            self._logged_error = str(error)
        else:
            self._logged_error = ""

    def _made(self, now: datetime) -> tuple[ServerCertificate, TlsIdentity]:
        # A certificate of a CA that agents do not know yet would prevent them from learning of this CA.
        patient = self._patient(now)
        certificate = ads_server_certificate(self._issuer, self._pairs, now, self._hosts, patient=patient)
        key, roots = certificate.key.reveal(), self._issuer.trust_bundle()
        return certificate, TlsIdentity(certificate.chain_pem, key, roots)
