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
