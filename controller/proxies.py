"""Proxy certificates on request: what the socket's commands and the command line without a server do."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from admin.commands import ProxyRequest
from certs.authority import CertificateAuthority
from certs.issuer import Issuer
from certs.ledger import Ledger, LedgerEntry
from certs.material import ProxyCertificate
from certs.proxy import issue_proxy
from controller import lock
from mesh.identity import ProxyName
from mesh.names import Namespace, ProxyUuid, ServiceName, TrustDomain

LEDGER_FILE: Final = "ledger.sqlite"


class ProxyIssuing:
    """Issues and revokes with one issuer and ledger; may be used from several threads."""

    def __init__(
        self,
        issuer: Issuer,
        ledger: Ledger,
        clock: Callable[[], datetime],
        validity: timedelta,
        issued: Callable[[], None],
    ) -> None:
        self._issuer = issuer
        self._ledger = ledger
        self._clock = clock
        self._validity = validity
        self._issued = issued

    def issue(self, request: ProxyRequest) -> ProxyCertificate:
        """Issue a certificate; raise CertificateError."""
        name = ProxyName(ProxyUuid(request.uuid), ServiceName(request.service), Namespace(request.namespace))
        validity = timedelta(days=request.validity_days) if request.validity_days else self._validity
        issued = issue_proxy(self._issuer, self._ledger, name, validity, self._clock())
        self._issued()
        return issued

    def revoke(self, serial: str) -> LedgerEntry:
        """Revoke a certificate; raise CertificateError."""
        return self._ledger.revoke(serial, self._clock())

    def trust_bundle(self) -> bytes:
        """Return the roots as PEM."""
        return self._issuer.trust_bundle()


@contextlib.contextmanager
def without_server(
    state: Path, trust_domain: TrustDomain, clock: Callable[[], datetime], validity: timedelta
) -> Iterator[ProxyIssuing]:
    """Open a state directory that no server uses, for as long as the context lasts.

    Raises StartupError if a server does use it, CertificateError if it cannot be used.
    """
    lock.prepare(state)
    with lock.held(state):
        authority = CertificateAuthority.open(state, trust_domain, clock())
        with Ledger.open(state / LEDGER_FILE) as ledger:
            yield ProxyIssuing(authority, ledger, clock, validity, lambda: None)
