"""Certificates in a text of somebody else's: read whole, so that what comes after need expect no surprise."""

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
"""All that the library raises of what it can make nothing of: few of them are ValueErrors."""


PLAIN: Final = (
    "each -----BEGIN ...----- and -----END ...----- must be a line of its own, with no byte order mark or "
    "other text beside it, and no headers below it"
)
_LINE: Final = 253
"""A line as long as BoringSSL's buffer, or several times that, looks to it as if an empty one followed."""


def is_plain(pem: bytes) -> bool:
    """Say whether a text is PLAIN: our library reads more than BoringSSL does, and so than Envoy and gRPC."""
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
    """Return the first certificate of a PEM text, as far as it must be read to be one; raises ValueError."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except UNREADABLE as error:
        raise ValueError(str(error)) from error


def loaded(pem: bytes) -> list[x509.Certificate]:
    """Return the certificates of a PEM text, at least one, each as far as it must be read to be one.

    Raises ValueError, without words of the text.
    """
    try:
        return x509.load_pem_x509_certificates(pem)
    except UNREADABLE:
        raise ValueError("is not a certificate in PEM") from None


def as_pem(certificates: Iterable[x509.Certificate]) -> bytes:
    """Return certificates as one PEM text, in their order."""
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def certificates_in(pem: bytes) -> list[x509.Certificate]:
    """Return the certificates of a PEM text, at least one; what stands between them is left out.

    Raises ValueError, without words of the text, also where extensions or the key of one cannot be read.
    """
    found = loaded(pem)
    for each in found:
        try:
            _ = each.extensions, each.public_key()
        except UNREADABLE:
            raise ValueError("has a key or extensions that cannot be read") from None
    return found
