"""Certificate of this server for other servers, and the TLS contexts of both sides."""

import asyncio
import ssl
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog

from certs.contract import Authority
from certs.errors import CertificateError
from certs.keys.pair import Pair
from certs.keys.replica import replica_pair
from certs.renewal import due
from meshwright.sidecars.document.tls import server_context
from meshwright.tls.key_pair import load_key_pair
from xds.server.tls import TlsIdentity

LOOK_SECONDS: Final = 10.0
"""Seconds between two looks whether the certificate is due, or the roots have changed."""

_log = structlog.get_logger("controller.sharing.peers")


class PeerTls:
    """Certificate with a key that is only in memory; a renewed one is used from the next handshake on."""

    def __init__(self, issuer: Authority, replica: str, now: datetime) -> None:
        """Issue the first certificate; raise CertificateError if the CA cannot sign."""
        self._issuer, self._replica = issuer, replica
        self._logged_error = ""
        self._take(self._made(now))

    def identity(self) -> TlsIdentity:
        """Return the present certificate with key and roots."""
        return self._identity

    def server(self) -> ssl.SSLContext:
        """Return the context of the port, which always uses the newest certificate."""
        return server_context(self.identity)

    def client(self) -> ssl.SSLContext:
        """Return the context for questions; another one after each renewal."""
        return self._client

    async def renewing(self, clock: Callable[[], datetime]) -> None:
        """Renew the certificate when due or when the roots change, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look(clock())

    async def look(self, now: datetime) -> None:
        """Renew the certificate if due, or if the roots have changed; log an error once."""
        roots, signer = self._issuer.trust_bundle(), self._issuer.fingerprint
        if (roots, signer) == (self._identity.trust_bundle, self._signer) and not due(self._pair.leaf, now):
            return
        try:
            self._take(await asyncio.to_thread(self._made, now))
        except CertificateError as error:
            if str(error) != self._logged_error:
                _log.error("certificate for other servers not renewed", reason=str(error))
            self._logged_error = str(error)
        else:
            self._logged_error = ""

    def _made(self, now: datetime) -> tuple[Pair, TlsIdentity, str]:
        signer, roots = self._issuer.fingerprint, self._issuer.trust_bundle()
        pair = replica_pair(self._issuer, self._replica, now)
        return pair, TlsIdentity(pair.chain_pem, pair.key.reveal(), roots), signer

    def _take(self, made: tuple[Pair, TlsIdentity, str]) -> None:
        self._pair, self._identity, self._signer = made
        self._client = _client_context(self._identity)


def _client_context(identity: TlsIdentity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=identity.trust_bundle.decode("ascii"))
    load_key_pair(context, identity.chain, identity.key)
    return context
