"""Issuer of service certificates, made from the settings."""

import asyncio
import os
from asyncio import FIRST_COMPLETED
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from certs.contract import IssuerKind
from certs.custody import AuthorityWithLedger, Custody
from certs.errors import CertificateError
from certs.issuer_selection import CertManagerSettings, OpenedIssuer, Told, VaultSettings, open_issuer
from certs.issuers.exchanges import Exchanges
from certs.issuers.file_authority import WatchedFiles
from certs.issuers.reference import IssuerReference
from certs.issuers.succeeding_issuer import Role
from certs.keys.pair import KeyPairOptions
from certs.manager import first
from certs.roots.role_succession import RoleSuccession
from meshwright.controller.issuing.periodic import tending
from meshwright.controller.kubernetes.home import home
from meshwright.controller.settings.settings import Settings
from meshwright.delivery.certificates.issuing import ConcurrentIssuing, IssuingStrategy, SequentialIssuing
from meshwright.mesh.identity import ServiceIdentity

SILENT_SECONDS: Final = 5.0
"""Seconds to wait for an issuer before a log line."""

_log = structlog.get_logger("controller.issuing")


@dataclass(frozen=True, slots=True)
class IssuerAccess:
    """An opened issuer of service certificates, and the strategy of requesting certificates there.

    `turn` is the turn of this server to renew an identity's certificate, from 0, among several servers.
    """

    opened: OpenedIssuer
    asking: IssuingStrategy
    turn: Callable[[ServiceIdentity], int] = first

    async def tending(self, clock: Callable[[], datetime]) -> None:
        """Keep the issuer's logins and CA certificates current, until cancelled.

        Each error is logged once.
        """
        await tending("issuer", self.opened.kind.value, self.opened.seconds, self._tended, clock)

    def close(self) -> None:
        """Refuse new requests for certificates, and abort requests already sent to other machines."""
        self.asking.close()
        self.opened.close()

    async def _tended(self, now: datetime) -> None:
        await asyncio.to_thread(self.opened.tend, now)


async def issuing(
    settings: Settings, authority: AuthorityWithLedger, now: datetime, stop: asyncio.Event
) -> IssuerAccess | None:
    """Open the issuer; return `None` if `stop` is set meanwhile, because a remote issuer may be slow.

    Raises CertificateError if the issuer cannot sign.
    """
    exchanges = Exchanges()
    opening = asyncio.create_task(
        asyncio.to_thread(
            open_issuer,
            issuer_settings(settings),
            authority.opened_authority,
            RoleSuccession(authority.store, Role.SERVICES),
            authority.pairs_of_services(settings.state).services_end,
            now,
            exchanges,
        )
    )
    stopping = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait((opening, stopping), timeout=SILENT_SECONDS, return_when=FIRST_COMPLETED)
    if not done:
        _log.warning(
            "issuer has not answered yet; the server serves proxies after the first answer",
            issuer=settings.issuer.value,
        )
        await asyncio.wait((opening, stopping), return_when=FIRST_COMPLETED)
    stopping.cancel()
    if not stop.is_set():
        opened = await opening
        return IssuerAccess(opened, ConcurrentIssuing() if opened.remote else SequentialIssuing())
    # Aborts the requests of the thread, which cannot be cancelled.
    exchanges.stop()
    with suppress(CertificateError):  # the result is not needed any more
        (await opening).close()
    return None


def issuer_settings(settings: Settings) -> Told:
    """Return the settings of the selected issuer of service certificates; None for the built-in one."""
    match settings.issuer:
        case IssuerKind.BUILT_IN:
            return None
        case IssuerKind.FILES:
            return _files(settings)
        case IssuerKind.VAULT:
            return _vault(settings)
        case IssuerKind.CERT_MANAGER:
            return _cert_manager(settings, settings.cert_manager_issuer)


def making(settings: Settings) -> KeyPairOptions:
    """Return the key type and the backdating of service certificates, from the settings."""
    return KeyPairOptions(settings.service_certificate_key, timedelta(seconds=settings.certificate_backdate))


def custody(settings: Settings) -> Custody:
    """Return the passphrase file of the private keys, and the files of the operator's own CA, if set."""
    directory, certificate = settings.authority_directory, settings.authority_certificate
    authority = None
    if directory is not None or certificate is not None:
        key, roots = settings.authority_key, settings.authority_roots
        authority = _watched(directory, certificate, key, roots, "authority_roots")
    return Custody(settings.key_passphrase_file, authority)


def _files(settings: Settings) -> WatchedFiles:
    return _watched(
        settings.ca_directory, settings.ca_certificate, settings.ca_key, settings.ca_roots, "ca_roots"
    )


def _watched(
    directory: Path | None, certificate: Path | None, key: Path | None, roots: Path | None, setting: str
) -> WatchedFiles:
    if directory is not None:
        return WatchedFiles.within(directory, setting)
    return WatchedFiles(certificate or Path(), key or Path(), roots, roots_setting=setting)


def _vault(settings: Settings) -> VaultSettings:
    return VaultSettings(
        address=settings.vault_address,
        mount=settings.vault_mount,
        role=settings.vault_role,
        ca=settings.vault_ca,
        roots=settings.vault_roots,
        namespace=settings.vault_namespace,
        token_file=settings.vault_token_file,
        approle_file=settings.vault_approle_file,
        kubernetes_role=settings.vault_kubernetes_role,
        kubernetes_token_file=settings.vault_kubernetes_token_file,
        auth_mount=settings.vault_auth_mount,
    )


def _cert_manager(settings: Settings, issuer: IssuerReference | None) -> CertManagerSettings:
    if issuer is None:
        raise AssertionError("the settings are not read without it")
    return CertManagerSettings(
        issuer=issuer,
        namespace=settings.cert_manager_namespace or home(os.environ),
        seconds=settings.cert_manager_seconds,
        roots=settings.cert_manager_roots,
        kubeconfig=settings.kubeconfig,
        context=settings.kube_context,
    )
