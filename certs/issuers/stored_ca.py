"""A CA as it is stored: certificate, key and roots, before anything of them is parsed. A pure module.

A stored CA may be incomplete, damaged or expired. `root_of` returns a CA that can sign, or raises the reason.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from cryptography.hazmat.primitives import serialization

from certs.errors import StateError
from certs.issuers.root import CaNames, Root, read_root
from certs.keys.bundle import TrustBundle
from certs.keys.material import PrivateKey
from meshwright.mesh.names import TrustDomain

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stored content that cannot be read now, for example because a file is damaged.

    `reason` is a sentence for the operator: the place, the fault, and what to do.
    """

    reason: str


def readable(content: T | Unreadable) -> T:
    """Return stored content; raise StateError with the reason if the content is unreadable."""
    if isinstance(content, Unreadable):
        raise StateError(content.reason)
    return content


@dataclass(frozen=True, slots=True)
class StoredCa:
    """A CA as PEM: the certificate with intermediates below it, the key, and the roots of an intermediate.

    A part is None if it is missing. A self-signed CA has no roots.
    """

    certificate: bytes | Unreadable | None = field(repr=False)
    key: PrivateKey | Unreadable | None
    roots: bytes | Unreadable | None = field(default=None, repr=False)

    @classmethod
    def of(cls, root: Root) -> "StoredCa":
        """Return a CA in its stored form. An intermediate is stored with the CAs above, and their roots."""
        key = root.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        own = root.certificate.public_bytes(serialization.Encoding.PEM)
        chain = root.above.chain_pem
        return cls(chain or own, PrivateKey(key), root.above.roots.pem if chain else None)

    @property
    def is_there(self) -> bool:
        """Return True for a CA, even a part of one. Raises StateError if the certificate is unreadable."""
        return readable(self.certificate) is not None or self.key is not None

    @property
    def trusted(self) -> bytes:
        """Return the roots to trust for certificates of this CA, as PEM, even if the CA has expired.

        Empty for a CA without a certificate. Raises StateError.
        """
        return readable(self.roots) or readable(self.certificate) or b""


def root_of(stored: StoredCa | None, names: CaNames, trust_domain: TrustDomain, now: datetime) -> Root:
    """Return a stored CA that can sign now. Raises StateError otherwise; `names` are for the error."""
    stored = stored or StoredCa(None, None)
    certificate = _present(readable(stored.certificate), names.certificate, names.key, names)
    key = _present(readable(stored.key), names.key, names.certificate, names)
    return read_root(names, certificate, key.reveal(), readable(stored.roots), trust_domain, now)


def trusted_roots(stored: StoredCa | None, names: CaNames) -> TrustBundle:
    """Return the roots to trust for certificates of a stored CA, even an expired one; empty without a CA.

    Raises StateError; `names` are for the error.
    """
    if stored is None:
        return TrustBundle.from_pems([])
    try:
        return TrustBundle.from_pems([stored.trusted])
    except ValueError as error:
        name = names.roots if readable(stored.roots) else names.certificate
        raise StateError(f"{name} cannot be used: {error}; {names.mend}") from None


def _present(content: T | None, name: str, other: str, names: CaNames) -> T:
    if content is None:
        raise StateError(f"{name} is missing, but {other} exists; {names.mend}")
    return content
