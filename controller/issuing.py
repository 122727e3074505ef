"""Who signs service certificates, as the settings tell, and what keeps it able to."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog

from certs.errors import CertificateError
from certs.issuers.contract import Issuer, IssuerKind
from certs.issuers.exchanges import Exchanges
from certs.issuers.opening import CertManagerTold, OpenedIssuer, Told, VaultTold, open_issuer
from certs.issuers.reference import IssuerReference
from certs.issuers.watched import WatchedFiles
from controller.settings import Settings
from delivery.asking import Asking, AtOnce, InTurn

_log = structlog.get_logger("controller.issuing")


@dataclass(frozen=True, slots=True)
class Issuing:
    """An issuer, and how it is asked."""

    opened: OpenedIssuer
    asking: Asking

    async def tending(self, clock: Callable[[], datetime]) -> None:
        """Keep its logins and roots current, until cancelled; what fails is said once."""
        said = ""
        while True:
            await asyncio.sleep(self.opened.seconds)
            found = await asyncio.to_thread(self._tended, clock())
            if found and found != said:
                _log.error("issuer not as it should be", issuer=self.opened.kind.value, reason=found)
            elif said and not found:
                _log.info("issuer is well again", issuer=self.opened.kind.value)
            said = found

    def close(self) -> None:
        """Begin with nothing more, and end at once whatever is being asked of another machine."""
        self.asking.close()
        self.opened.close()

    def _tended(self, now: datetime) -> str:
        """Return what is wrong; empty if nothing is. For a thread."""
        try:
            self.opened.tend(now)
        except CertificateError as error:
            return str(error)
        return ""


async def issuing(
    settings: Settings, authority: Issuer, now: datetime, stop: asyncio.Event
) -> Issuing | None:
    """Open it; None if told to stop meanwhile: one across a network may be silent for a while.

    Raises CertificateError where it cannot sign and never could.
    """
    exchanges = Exchanges()
    opening = asyncio.create_task(
        asyncio.to_thread(open_issuer, told(settings), authority, settings.state, now, exchanges)
    )
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not stop.is_set():
        opened = await opening
        return Issuing(opened, AtOnce() if opened.remote else InTurn())
    exchanges.stop()
    with suppress(CertificateError):  # nobody waits for it any more
        (await opening).close()
    return None


def told(settings: Settings) -> Told:
    """Return what the settings tell of who signs."""
    match settings.issuer:
        case IssuerKind.BUILT_IN:
            return None
        case IssuerKind.FILES:
            return _files(settings)
        case IssuerKind.VAULT:
            return _vault(settings)
        case IssuerKind.CERT_MANAGER:
            return _cert_manager(settings, settings.cert_manager_issuer)


def _files(settings: Settings) -> WatchedFiles:
    if settings.ca_directory is not None:
        return WatchedFiles.within(settings.ca_directory)
    certificate, key = settings.ca_certificate, settings.ca_key
    return WatchedFiles(certificate or Path(), key or Path(), settings.ca_roots)


def _vault(settings: Settings) -> VaultTold:
    return VaultTold(
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


def _cert_manager(settings: Settings, issuer: IssuerReference | None) -> CertManagerTold:
    from controller.cluster import home

    if issuer is None:
        raise AssertionError("the settings are not read without it")
    return CertManagerTold(
        issuer=issuer,
        namespace=settings.cert_manager_namespace or home(os.environ),
        seconds=settings.cert_manager_seconds,
        roots=settings.cert_manager_roots,
        kubeconfig=settings.kubeconfig,
        context=settings.kube_context,
    )
