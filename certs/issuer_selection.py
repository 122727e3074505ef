"""Selection of the issuer for service certificates.

The authority itself, or another configured issuer.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

from certs.contract import Issuer, IssuerKind
from certs.errors import IssuerError
from certs.issuers.exchanges import Exchanges
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.issuers.reference import IssuerReference
from certs.issuers.succeeding_issuer import SucceedingIssuer
from certs.issuers.succession import Succession
from certs.issuers.succession_store import SuccessionStore
from certs.issuers.vault.http import VaultApi
from certs.issuers.vault.issuer import VaultIssuer, VaultPki
from certs.issuers.vault.login import SERVICE_ACCOUNT_TOKEN, ByAppRole, ByKubernetes, ByToken, Login
from certs.keys.bundle import TrustBundle
from certs.roots.succeeding_authority import OpenedAuthority

if TYPE_CHECKING:
    from certs.issuers.cert_manager.issuer import CertManagerIssuer

_LOOKING: Final = 5.0
_AUTHORITY: Final = "authority"
"""Recorded name of an authority with an external CA, different from the name of the built-in one."""
_ASKING: Final = 60.0


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """Settings of Vault as the issuer.

    One of `token_file`, `approle_file` and `kubernetes_role` determines the login.
    """

    address: str
    mount: str
    role: str
    ca: Path | None = None
    roots: Path | None = None
    namespace: str = ""
    token_file: Path | None = None
    approle_file: Path | None = None
    kubernetes_role: str = ""
    kubernetes_token_file: Path | None = None
    auth_mount: str = ""

    @property
    def name(self) -> str:
        """Return a unique name of the PKI, for example `vault:https://vault:8200:mesh:pki`."""
        return f"{IssuerKind.VAULT}:{self.address}:{self.namespace}:{self.mount}"

    @property
    def login(self) -> Login:
        """Return the login method for Vault."""
        if self.token_file is not None:
            return ByToken(self.token_file)
        if self.approle_file is not None:
            return ByAppRole(self.approle_file, self.auth_mount or "approle")
        token = self.kubernetes_token_file or SERVICE_ACCOUNT_TOKEN
        return ByKubernetes(self.kubernetes_role, token, self.auth_mount or "kubernetes")


@dataclass(frozen=True, slots=True)
class CertManagerSettings:
    """cert-manager in a cluster (by kubeconfig and context), and the time limit of a request in seconds."""

    issuer: IssuerReference
    namespace: str
    seconds: float
    roots: Path | None = None
    kubeconfig: Path | None = None
    context: str = ""

    @property
    def name(self) -> str:
        """Return a unique name of the issuer, with the namespace of a namespaced issuer."""
        within = "" if self.issuer.is_namespaced is False else f":{self.namespace}"
        return f"{IssuerKind.CERT_MANAGER}:{self.issuer}{within}"


Told = VaultSettings | CertManagerSettings | WatchedFiles | None
"""The configured issuer; None if the authority signs."""


@dataclass(frozen=True, slots=True)
class OpenedIssuer:
    """The issuer with its kind; `remote` is True for requests over a network.

    `tend` must be called every `seconds`, by one caller at a time, in a thread. `tend` keeps files, logins
    and roots current, and raises IssuerError or StateError on failure. `close` ends pending requests at once,
    in all threads.
    """

    issuer: SucceedingIssuer
    kind: IssuerKind
    remote: bool
    seconds: float
    tend: Callable[[datetime], None]
    close: Callable[[], None] = lambda: None


def open_issuer(
    settings: Told,
    opened_authority: OpenedAuthority,
    succession_store: SuccessionStore,
    ends: Callable[[], datetime | None],
    now: datetime,
    exchanges: Exchanges | None = None,
) -> OpenedIssuer:
    """Open the configured issuer. Raises IssuerError or StateError if the issuer has never been able to sign.

    `succession_store` records the issuers of service certificates, and `ends` returns the end of their last
    stored certificate, None without any. `exchanges` runs requests over a network; a stop ends these
    requests, so stopping does not wait until an issuer is open.
    """
    authority = opened_authority.authority
    own = TrustBundle.from_pems([authority.trust_bundle()])
    # Without a record the authority has signed, because there was no other issuer.
    before = succession_store.read() or Succession(IssuerKind.BUILT_IN, own, now)
    if before.name == IssuerKind.BUILT_IN:
        before = replace(
            before, roots=own
        )  # the authority changes its roots itself, and may have done so since

    def succeeding(inner: Issuer, name: str, *, drops: bool) -> SucceedingIssuer:
        return SucceedingIssuer(inner, name, succession_store, before, ends, now, drops=drops)

    match settings:
        case None if opened_authority.kind is IssuerKind.FILES:
            made = succeeding(authority, _AUTHORITY, drops=False)
            return OpenedIssuer(made, IssuerKind.FILES, False, _LOOKING, made.look)
        case None:
            made = succeeding(authority, IssuerKind.BUILT_IN, drops=True)
            return OpenedIssuer(made, IssuerKind.BUILT_IN, False, _ASKING, made.look)
        case WatchedFiles():
            ca = WatchedIssuer(settings, authority.trust_domain, now)
            made = succeeding(ca, IssuerKind.FILES, drops=False)
            return OpenedIssuer(made, IssuerKind.FILES, False, _LOOKING, _both(ca.look, made.look))
        case VaultSettings():
            vault = _vault(settings, authority, before, exchanges or Exchanges())
            made = succeeding(vault, settings.name, drops=False)
            return OpenedIssuer(
                made, IssuerKind.VAULT, True, _ASKING, _both(vault.tend, made.look), vault.close
            )
        case CertManagerSettings():
            asked = _cert_manager(settings, authority, before, now, exchanges or Exchanges())
            made = succeeding(asked, settings.name, drops=False)
            tend = _both(asked.tend, made.look)
            return OpenedIssuer(made, IssuerKind.CERT_MANAGER, True, _ASKING, tend, asked.close)
        case _:
            assert_never(settings)


def _both(tend: Callable[[datetime], None], look: Callable[[datetime], None]) -> Callable[[datetime], None]:
    """Return a function that calls `tend` and then `look`, even after an error of `tend`."""

    def both(now: datetime) -> None:
        try:
            tend(now)
        finally:
            look(now)

    return both


def _vault(
    vault_settings: VaultSettings, authority: Issuer, before: Succession, exchanges: Exchanges
) -> VaultIssuer:
    api = VaultApi(vault_settings.address, vault_settings.ca, vault_settings.namespace, exchanges=exchanges)
    pki = VaultPki(vault_settings.mount, vault_settings.role, vault_settings.roots)
    return VaultIssuer.open(
        api, vault_settings.login, pki, authority.trust_domain, _known(before, vault_settings.name)
    )


def _cert_manager(
    cert_manager_settings: CertManagerSettings,
    authority: Issuer,
    before: Succession,
    now: datetime,
    exchanges: Exchanges,
) -> "CertManagerIssuer":
    # Imported only when used, because the Kubernetes client takes memory.
    from certs.issuers.cert_manager.issuer import CertificateRequestSettings, CertManagerIssuer
    from meshwright.kube.connection.connection import find_connection
    from meshwright.kube.errors import ConfigError

    try:
        connection = find_connection(cert_manager_settings.kubeconfig, cert_manager_settings.context)
    except ConfigError as error:
        raise IssuerError(str(error)) from error
    asked = CertificateRequestSettings(
        cert_manager_settings.issuer,
        cert_manager_settings.namespace,
        cert_manager_settings.seconds,
        cert_manager_settings.roots,
    )
    roots = _known(before, cert_manager_settings.name)
    return CertManagerIssuer.open(connection, asked, authority.trust_domain, roots, now, exchanges)


def _known(before: Succession, name: str) -> TrustBundle:
    """Return the recorded roots of the issuer `name`; empty if the record is about another issuer."""
    return before.roots if before.name == name else TrustBundle.from_pems([])
