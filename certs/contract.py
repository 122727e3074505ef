"""The contract between what needs certificates and who signs them.

Our own CA is the first issuer; a CA given as files, Vault and cert-manager have their place beside it. An
issuer that must ask over a network blocks until it is answered: its caller runs it in a worker thread.
"""

import enum
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from meshwright.mesh.names import TrustDomain


class Usage(enum.StrEnum):
    """What a certificate is for; decides its extended key usage, so that no kind serves for another."""

    SERVICE = "service"
    PROXY = "proxy"
    SERVER = "server"
    GATEWAY = "gateway"

    @property
    def client_auth(self) -> bool:
        """Say whether the holder may be a TLS client."""
        return self is not Usage.SERVER

    @property
    def server_auth(self) -> bool:
        """Say whether the holder may be a TLS server."""
        return self in (Usage.SERVICE, Usage.SERVER)


class IssuerKind(enum.StrEnum):
    """Who signs service certificates."""

    BUILT_IN = "built-in"
    FILES = "files"
    VAULT = "vault"
    CERT_MANAGER = "cert-manager"


class KeyKind(enum.StrEnum):
    """What kind of key a certificate is for; Envoy takes no elliptic curve but P-256 for its own."""

    ECDSA_P256 = "ecdsa-p256"
    RSA_2048 = "rsa-2048"
    RSA_3072 = "rsa-3072"
    RSA_4096 = "rsa-4096"


@dataclass(frozen=True, slots=True)
class Names:
    """What a certificate says of its holder; the three kinds of alternative names are each sorted.

    `common_name` may be longer than X.520's 64 characters. Addresses are in their shortest spelling.
    """

    common_name: str
    uris: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    ip_addresses: tuple[str, ...] = ()

    @property
    def alternatives(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return all but the common name: what TLS peers verify."""
        return self.uris, self.dns_names, self.ip_addresses


class Possession(Protocol):
    """Proof that the applicant holds the private key (see `certs.keys.proof_of_possession`)."""

    @property
    def csr_pem(self) -> bytes:
        """Return a PKCS#10 request (PEM), which brings the public key and proves it to whoever reads it."""

    def public_key(self) -> bytes:
        """Return the key as X.509 writes it (DER), proven; raise RequestError where it is not."""


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """A certificate to be signed.

    What the PKCS#10 request of its `possession` says of names is for issuers that can read nothing else;
    `names` and `usage` are what the asker was found to be entitled to, and rule. Times are whole seconds,
    with a time zone.
    """

    usage: Usage
    names: Names
    not_before: datetime
    not_after: datetime
    possession: Possession = field(repr=False)

    @property
    def csr_pem(self) -> bytes:
        """The PKCS#10 request; one for a key of this process is signed when it is first asked for."""
        return self.possession.csr_pem


class Issuer(Protocol):
    """Signs certificates for one trust domain."""

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the SPIFFE trust domain whose identities it certifies."""

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Return the signed certificate and its intermediates as PEM, the certificate first, no root.

        The issuer may end it earlier than asked for, never later, and must add or drop no name. Raises
        IssuerError when it cannot sign now, RequestError when it never would.
        """

    def trust_bundle(self) -> bytes:
        """Return every root to be trusted now as PEM; while roots change there is more than one."""

    def signing_bundle(self) -> bytes:
        """Return, as PEM, the roots below which stands what is issued now; all else is to be replaced."""


class Authority(Issuer, Protocol):
    """The issuer of a whole mesh: what the server signs with, and what its ledger belongs to."""

    @property
    def fingerprint(self) -> str:
        """Return what tells its key from others'; it stays while that key signs."""

    @property
    def other(self) -> str:
        """Return the fingerprint of the other root while one gives way to the other; empty otherwise."""

    @property
    def leaving(self) -> str:
        """Return the fingerprint of the root that gives way next; of the one that signs where none does."""

    @property
    def not_after(self) -> datetime:
        """Return the end of what it signs with: nothing that it signs is valid longer."""

    def trusts(self, signer: str) -> bool:
        """Say whether what a signer has signed is good now: not of a root that is trusted no longer."""

    def signer_of(self, chain_pem: bytes) -> str:
        """Return the fingerprint of what has signed a certificate of its own; empty for another's."""
