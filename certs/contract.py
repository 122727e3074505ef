"""Interface between users of certificates and the issuers of certificates.

The built-in CA is one issuer; a CA in files, Vault and cert-manager are others. A remote issuer blocks until
the answer arrives, so callers run issuers in a worker thread.
"""

import enum
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from meshwright.mesh.names import TrustDomain


class Usage(enum.StrEnum):
    """Purpose of a certificate.

    The purpose determines the extended key usage, so a certificate of one kind cannot serve as another.
    """

    SERVICE = "service"
    PROXY = "proxy"
    SERVER = "server"
    GATEWAY = "gateway"
    REPLICA = "replica"

    @property
    def client_auth(self) -> bool:
        """Return whether the holder of a certificate with this usage may be a TLS client."""
        return self is not Usage.SERVER

    @property
    def server_auth(self) -> bool:
        """Return whether the holder of a certificate with this usage may be a TLS server."""
        return self in (Usage.SERVICE, Usage.SERVER, Usage.REPLICA)


class IssuerKind(enum.StrEnum):
    """The kinds of issuers for service certificates."""

    BUILT_IN = "built-in"
    FILES = "files"
    VAULT = "vault"
    CERT_MANAGER = "cert-manager"


class KeyKind(enum.StrEnum):
    """The kinds of keys. For its own key Envoy accepts P-256 as the only elliptic curve."""

    ECDSA_P256 = "ecdsa-p256"
    RSA_2048 = "rsa-2048"
    RSA_3072 = "rsa-3072"
    RSA_4096 = "rsa-4096"


@dataclass(frozen=True, slots=True)
class Names:
    """The names in a certificate; each kind of alternative names is sorted.

    `common_name` may be longer than X.520's 64 characters. Addresses are in their shortest form.
    """

    common_name: str
    uris: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    ip_addresses: tuple[str, ...] = ()

    @property
    def alternatives(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return the names verified by TLS peers: all except the common name."""
        return self.uris, self.dns_names, self.ip_addresses


class Possession(Protocol):
    """Proof of the applicant's possession of the private key (see `certs.keys.proof_of_possession`)."""

    @property
    def csr_pem(self) -> bytes:
        """Return a PKCS#10 request (PEM) with the public key, which proves possession to any reader."""

    def public_key(self) -> bytes:
        """Return the verified public key in X.509 form (DER); raise RequestError if the proof fails."""


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """A certificate to sign.

    The applicant is entitled to `names` and `usage`, and they take precedence. The names in the PKCS#10
    request of `possession` are only for issuers that read nothing but a CSR. Times are whole seconds with a
    time zone.
    """

    usage: Usage
    names: Names
    not_before: datetime
    not_after: datetime
    possession: Possession = field(repr=False)

    @property
    def csr_pem(self) -> bytes:
        """Return the PKCS#10 request (PEM); for a key made in this process, signed at first use."""
        return self.possession.csr_pem


class Issuer(Protocol):
    """Signs certificates for one trust domain."""

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the SPIFFE trust domain of the certified identities, for example `cluster.local`."""

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Return the signed certificate followed by its intermediates, as PEM without a root.

        The issuer may shorten the validity but not extend it, and must not add or drop names. Raises
        IssuerError if signing fails now, and RequestError if this request can never be signed.
        """

    def trust_bundle(self) -> bytes:
        """Return every root to trust now, as PEM; during a change of roots there are several."""

    def signing_bundle(self) -> bytes:
        """Return the roots above the certificates issued now, as PEM.

        Certificates below other roots must be replaced.
        """


class Authority(Issuer, Protocol):
    """The issuer of a whole mesh, which signs for the server and owns the ledger."""

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the signing key, stable while this key signs."""

    @property
    def other(self) -> str:
        """Return the fingerprint of the root beside the signing one in a root rotation; empty otherwise."""

    @property
    def leaving(self) -> str:
        """Return the fingerprint of the root to be replaced next; without a change, the signing root."""

    @property
    def not_after(self) -> datetime:
        """Return the end of the signing CA's validity, which limits every issued certificate."""

    def trusts(self, signer: str) -> bool:
        """Return whether certificates below the root with fingerprint `signer` are accepted now.

        The result is False for a retired root.
        """

    def signer_of(self, chain_pem: bytes) -> str:
        """Return the fingerprint of this CA's root above a certificate; empty below other CAs."""
