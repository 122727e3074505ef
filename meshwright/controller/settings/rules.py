"""Rules for combinations of settings, each of which is valid by itself."""

from collections.abc import Collection
from typing import Final

from certs.contract import IssuerKind
from meshwright.controller.settings.fields import Fields
from meshwright.controller.settings.store_kind import StoreKind
from meshwright.mesh.policies.resilience import LEAST_SILENCE

_VAULT_LOGINS: Final = ("vault_token_file", "vault_approle_file", "vault_kubernetes_role")

_OF_ISSUERS: Final = (
    (IssuerKind.FILES, "ca_"),
    (IssuerKind.VAULT, "vault_"),
    (IssuerKind.CERT_MANAGER, "cert_manager_"),
)
"""Prefixes of the settings of each issuer, for example `vault_`; without effect with another issuer."""

OF_ONE_DIRECTORY: Final = (
    "authority_directory",
    "authority_certificate",
    "authority_key",
    "authority_roots",
    "begin_anew",
    "rebuild_ledger",
)
"""Settings that concern the CA or the ledger in the directory of the only server."""

_WITH_SECRET: Final = frozenset({StoreKind.DIRECTORY, StoreKind.KUBERNETES})
"""Stores that keep the data key apart from the keys that it encrypts, or are private to one user."""


def check(settings: Fields) -> None:
    """Raise ValueError for the first invalid combination of settings, with a sentence for the operator."""
    _ordered(settings)
    _survivable(settings)
    _collected(settings)
    _check_signers(settings)
    _check_store(settings)


def _ordered(settings: Fields) -> None:
    if settings.longest_seconds < settings.quiet_seconds:
        raise ValueError("longest_seconds must not be less than quiet_seconds")
    if settings.endpoint_longest_seconds < settings.endpoint_quiet_seconds:
        raise ValueError("endpoint_longest_seconds must not be less than endpoint_quiet_seconds")
    if settings.dns_ceiling_seconds < settings.dns_floor_seconds:
        raise ValueError("dns_ceiling_seconds must not be less than dns_floor_seconds")
    if settings.webhook_address is not None and not settings.kubernetes:
        raise ValueError("webhook_address requires kubernetes: add --kubernetes")
    if settings.webhook_address is not None and settings.webhook_reached_at is None:
        raise ValueError(
            "webhook_address needs webhook_reached_at, the address at which API servers reach the webhook"
        )
    if settings.injection and settings.webhook_address is None:
        raise ValueError(
            "injection needs webhook_address, at which API servers call the server: set webhook_address too"
        )
    for name in ("injection_config", "injection_config_map"):
        if getattr(settings, name) is not None and not settings.injection:
            raise ValueError(f"{name} requires injection: set injection too, or remove {name}")
    if settings.injection_config is not None and settings.injection_config_map is not None:
        raise ValueError("injection_config and injection_config_map exclude each other: set one of them")
    if "kubernetes" in settings.enrolment_proofs and not settings.kubernetes:
        raise ValueError(
            "enrolment_proofs includes kubernetes, whose tokens only a cluster can verify: add --kubernetes"
        )


def _survivable(settings: Fields) -> None:
    if 0 < settings.peer_silence_seconds < LEAST_SILENCE:
        raise ValueError(f"peer_silence_seconds must be 0 (keep-alive is off) or at least {LEAST_SILENCE}")
    if settings.ejecting_server_errors and not settings.ejecting_failures:
        raise ValueError("ejecting_server_errors needs ejecting_failures: set ejecting_failures to 1 or more")


def _collected(settings: Fields) -> None:
    if settings.trace_collector is None and settings.trace_collector_tls:
        raise ValueError(
            "trace_collector_tls requires trace_collector: set trace_collector too, or remove it"
        )
    if settings.trace_collector_ca is not None and not settings.trace_collector_tls:
        raise ValueError("trace_collector_ca requires trace_collector_tls: set that too, or remove it")
    if settings.trace_collector is not None and not settings.trace_collector.port:
        raise ValueError("trace_collector must have a port, for example otel-collector:4317")


def _check_signers(settings: Fields) -> None:
    fields = type(settings).model_fields
    messages = {name for name, field in fields.items() if getattr(settings, name) != field.default}
    for kind, beginning in _OF_ISSUERS:
        if settings.issuer is not kind and (
            of := sorted(item for item in messages if item.startswith(beginning))
        ):
            raise ValueError(f"{of[0]} requires issuer {kind}: set issuer to {kind}, or remove {of[0]}")
    if settings.issuer is IssuerKind.CERT_MANAGER and settings.cert_manager_issuer is None:
        raise ValueError("issuer cert-manager needs cert_manager_issuer (docs/operate/certificates.md)")
    if settings.issuer is IssuerKind.FILES and not _names_files(messages, "ca"):
        raise ValueError("issuer files needs either ca_directory, or ca_certificate and ca_key")
    if any(item.startswith("authority_") for item in messages) and not _names_files(messages, "authority"):
        raise ValueError(
            "a mesh CA in files needs either authority_directory, or authority_certificate and authority_key"
        )
    if settings.issuer is IssuerKind.VAULT:
        if lacking := [name for name in ("vault_address", "vault_role") if name not in messages]:
            raise ValueError(f"issuer vault needs {lacking[0]} (docs/operate/certificates.md)")
        logins = [name for name in _VAULT_LOGINS if name in messages]
        if len(logins) != 1:
            raise ValueError(
                f"issuer vault needs exactly one of {', '.join(_VAULT_LOGINS)}, but has {len(logins)}"
            )


def _check_store(settings: Fields) -> None:
    """Refuse settings that need one server with its own directory."""
    if settings.store is StoreKind.DIRECTORY:
        for name in ("peer_address", "peer_reached_at"):
            if getattr(settings, name):
                raise ValueError(
                    f"{name} requires a store that several servers share: set store, or remove {name}"
                )
        return
    store = f"store {settings.store}"
    if settings.store is StoreKind.KUBERNETES and not settings.kubernetes:
        raise ValueError(f"{store} requires kubernetes: add --kubernetes")
    if settings.store not in _WITH_SECRET and settings.key_passphrase_file is None:
        raise ValueError(
            f"{store} requires key_passphrase_file, the same passphrase on all servers: without it, "
            "whoever may read the records could read the private keys of the mesh"
        )
    fields = type(settings).model_fields
    for name in OF_ONE_DIRECTORY:
        if getattr(settings, name) != fields[name].default:
            raise ValueError(
                f"{store} does not work with {name}: all servers use the CA and the ledger in the store; "
                f"remove {name}, or remove store"
            )


def _names_files(names: Collection[str], prefix: str) -> bool:
    """Return whether settings name a CA's files in exactly one of two ways.

    The ways are a directory, or a certificate and a key.
    """
    pair = sum(f"{prefix}_{item}" in names for item in ("certificate", "key"))
    directory, roots = f"{prefix}_directory" in names, f"{prefix}_roots" in names
    return not (pair or roots) if directory else pair == 2
