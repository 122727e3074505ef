"""Sets of trusted roots as values: the same roots give the same bytes, whatever their order.

A pin identifies a root by the SHA-256 of the public key, which stays the same when the root is renewed.
"""

import hashlib
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from certs.keys.signing_request import key_digest
from meshwright.tls.pem import certificates_in, loaded


@dataclass(frozen=True, slots=True)
class TrustBundle:
    """Roots as PEM without duplicates, sorted by fingerprint (SHA-256 of the certificate, lower-case hex).

    During a change of the root or of the issuer there are several roots. Two bundles are equal if they
    contain the same certificates.
    """

    pem: bytes = field(repr=False)
    fingerprints: tuple[str, ...]

    @classmethod
    def from_pems(cls, pems: Iterable[bytes]) -> Self:
        """Combine the roots of these PEM texts; text between certificates is dropped.

        Empty texts are ignored. Raises ValueError for malformed PEM.
        """
        result = (certificate for pem in pems if pem.strip() for certificate in _certificates(pem))
        by_fingerprint = {_fingerprint(certificate): certificate for certificate in result}
        fingerprints = tuple(sorted(by_fingerprint))
        encoded = (
            by_fingerprint[fingerprint].public_bytes(serialization.Encoding.PEM)
            for fingerprint in fingerprints
        )
        return cls(b"".join(encoded), fingerprints)

    def union(self, other: Self) -> Self:
        """Return the roots of both bundles."""
        return (
            self if other.fingerprints == self.fingerprints else type(self).from_pems((self.pem, other.pem))
        )

    def among(self, fingerprints: Container[str]) -> Self:
        """Return the roots with one of these fingerprints."""
        if all(fingerprint in fingerprints for fingerprint in self.fingerprints):
            return self
        certificates = [
            certificate
            for certificate in _certificates(self.pem)
            if _fingerprint(certificate) in fingerprints
        ]
        return type(self).from_pems(
            certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates
        )

    def holds(self, other: Self) -> bool:
        """Return whether this bundle contains each root of the other one."""
        return set(other.fingerprints) <= set(self.fingerprints)

    @property
    def digest(self) -> str:
        """Return the identifier of the bundle: SHA-256 of the PEM, lower-case hexadecimal, 64 digits."""
        return hashlib.sha256(self.pem).hexdigest()


def _fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()


def _certificates(pem: bytes) -> list[x509.Certificate]:
    try:
        return certificates_in(pem)
    except ValueError as error:
        raise ValueError("roots are not certificates in PEM") from error


def pins(bundle_pem: bytes) -> tuple[str, ...]:
    """Return the pins of a bundle's roots (SHA-256 of the public keys), sorted.

    Raises ValueError for malformed PEM.
    """
    return tuple(sorted({key_digest(certificate.public_key()) for certificate in loaded(bundle_pem)}))


def pinned(shown: Iterable[bytes], wanted: Iterable[str]) -> bytes:
    """Return the shown certificates (DER) self-signed with a pinned key, as PEM.

    Only the owner of the key can make such a certificate, for example with another trust domain. Showing a
    root does not prove a signature of this root in the peer's own certificate.
    """
    names = frozenset(wanted)
    result = map(_root, shown)
    roots = {
        certificate
        for certificate in result
        if certificate is not None and key_digest(certificate.public_key()) in names
    }
    encoded = (root.public_bytes(serialization.Encoding.PEM) for root in roots)
    return b"".join(sorted(encoded))


def _root(der: bytes) -> x509.Certificate | None:
    try:
        certificate = x509.load_der_x509_certificate(der)
        certificate.verify_directly_issued_by(certificate)
        key_digest(certificate.public_key())
    except Exception:  # noqa: BLE001 - a stranger's bytes: what cannot be read is no root of ours
        return None
    return certificate
