"""Certificates in texts from others, parsed completely, so that later code never fails at parsing."""

from collections.abc import Iterable
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

UNREADABLE: Final = (
    ValueError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""Exceptions of `cryptography` for malformed certificates; few are ValueErrors."""


PLAIN: Final = (
    "each -----BEGIN ...----- and -----END ...----- must be alone on its line, without a "
    "byte order mark, other text or headers below it"
)
_LINE: Final = 253
"""Buffer size of BoringSSL's PEM reader: lines of a multiple of this length seem to end in an empty line."""


def is_plain(pem: bytes) -> bool:
    """Return whether a text is PLAIN."""
    inside = False
    for line in map(bytes.rstrip, pem.split(b"\n")):
        if b"-----BEGIN " in line or b"-----END " in line:
            inside = line.startswith(b"-----BEGIN ")
            alone = line.endswith(b"-----") and line.count(b"-----") == 2
            if not (alone and line.startswith(b"-----")):
                return False
        elif inside and (b":" in line or (line and len(line) % _LINE == 0)):
            return False
    return True


def first_in(pem: bytes) -> x509.Certificate:
    """Return the first certificate of a PEM text, without parsing its extensions. Raises ValueError."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except UNREADABLE as error:
        raise ValueError(str(error)) from error


def loaded(pem: bytes) -> list[x509.Certificate]:
    """Return the certificates of a PEM text, at least one, without parsing their extensions.

    Raises ValueError, without content of the text.
    """
    try:
        return x509.load_pem_x509_certificates(pem)
    except UNREADABLE:
        raise ValueError("is not a certificate in PEM") from None


def as_pem(certificates: Iterable[x509.Certificate]) -> bytes:
    """Return certificates as one PEM text, in their order."""
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)


def certificates_in(pem: bytes) -> list[x509.Certificate]:
    """Return the certificates of a PEM text, at least one; text between them is dropped.

    Raises ValueError, without content of the text, also for malformed extensions or keys.
    """
    certificates = loaded(pem)
    for certificate in certificates:
        try:
            _ = certificate.extensions, certificate.public_key()
        except UNREADABLE:
            raise ValueError("has a key or extensions that cannot be read") from None
    return certificates
