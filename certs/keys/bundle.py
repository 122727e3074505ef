"""The roots that somebody trusts, as a value: the same roots are the same bytes, whatever their order was."""

import hashlib
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from certs.keys.pem import certificates_in


@dataclass(frozen=True, slots=True)
class TrustBundle:
    """Roots as PEM, each once, sorted by fingerprint: the certificate's SHA-256, lower-case hexadecimal.

    While roots or issuers change there is more than one. Two are equal if they hold the same certificates.
    """

    pem: bytes = field(repr=False)
    fingerprints: tuple[str, ...]

    @classmethod
    def of(cls, pems: Iterable[bytes]) -> Self:
        """Put together what these PEM texts hold; text between certificates is left out.

        An empty text is no root; no text at all is the bundle without roots. Raises ValueError where one is
        not PEM.
        """
        found = (each for pem in pems if pem.strip() for each in _certificates(pem))
        by_fingerprint = {_fingerprint(each): each for each in found}
        fingerprints = tuple(sorted(by_fingerprint))
        encoded = (by_fingerprint[each].public_bytes(serialization.Encoding.PEM) for each in fingerprints)
        return cls(b"".join(encoded), fingerprints)

    def union(self, other: Self) -> Self:
        """Return the roots of both."""
        return self if other.fingerprints == self.fingerprints else type(self).of((self.pem, other.pem))

    def among(self, fingerprints: Container[str]) -> Self:
        """Return those of the roots that have one of these fingerprints."""
        if all(each in fingerprints for each in self.fingerprints):
            return self
        found = [each for each in _certificates(self.pem) if _fingerprint(each) in fingerprints]
        return type(self).of(each.public_bytes(serialization.Encoding.PEM) for each in found)

    def holds(self, other: Self) -> bool:
        """Say whether each root of the other is one of ours."""
        return set(other.fingerprints) <= set(self.fingerprints)

    @property
    def digest(self) -> str:
        """Return what tells it from other bundles: the SHA-256 of its PEM, lower-case hexadecimal."""
        return hashlib.sha256(self.pem).hexdigest()


def _fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()


def _certificates(pem: bytes) -> list[x509.Certificate]:
    try:
        return certificates_in(pem)
    except ValueError as error:
        raise ValueError("roots are not certificates in PEM") from error
