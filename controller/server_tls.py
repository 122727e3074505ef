"""The certificate that drivers' servers show, and its renewal."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from certs.errors import CertificateError
from certs.issuers.contract import Issuer
from certs.server import ads_server_certificate
from certs.stored import Pairs
from xds.server.tls import TlsIdentity

LOOK_SECONDS: Final = 3600.0

_log = structlog.get_logger("controller.server_tls")


class ServerTls:
    """What drivers' servers show in handshakes."""

    def __init__(
        self,
        issuer: Issuer,
        pairs: Pairs,
        hosts: tuple[str, ...],
        now: datetime,
        settled: Callable[[], datetime | None] = lambda: None,
    ) -> None:
        """Raise CertificateError if there is no certificate to begin with.

        `settled` returns from when on all agents have heard of what signs, None where they have for ever.
        """
        self._settled = settled
        self._issuer = issuer
        self._pairs = pairs
        self._hosts = hosts
        self._said = ""
        self._identity = self._made(now)

    def identity(self) -> TlsIdentity:
        """Return what to show now; may be called from any thread."""
        return self._identity

    async def renewing(self, clock: Callable[[], datetime]) -> None:
        """Renew the certificate whenever it is due, until cancelled; one that cannot be is said and kept."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look(clock())

    async def look(self, now: datetime) -> None:
        """Renew the certificate if it is due, or roots are others; that it cannot be is said once."""
        try:
            self._identity = await asyncio.to_thread(self._made, now)
        except CertificateError as error:
            if str(error) != self._said:
                _log.error("server certificate not renewed", reason=str(error))
            self._said = str(error)
        else:
            self._said = ""

    def _made(self, now: datetime) -> TlsIdentity:
        settled = self._settled()
        # One of a root that agents have not heard of yet would keep them from hearing of it.
        patient = settled is not None and now < settled
        certificate = ads_server_certificate(self._issuer, self._pairs, now, self._hosts, patient=patient)
        return TlsIdentity(certificate.chain_pem, certificate.key.reveal(), self._issuer.trust_bundle())
