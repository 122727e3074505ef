"""Pins: roots named by the SHA-256 of their public keys, which a renewed certificate of a root keeps."""

from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from certs.keys.pem import loaded
from certs.keys.signing_request import key_digest


def pins(bundle_pem: bytes) -> tuple[str, ...]:
    """Return the pin of each root of a bundle, sorted. Raises ValueError if it is no PEM."""
    return tuple(sorted({key_digest(each.public_key()) for each in loaded(bundle_pem)}))


def pinned(shown: Iterable[bytes], wanted: Iterable[str]) -> bytes:
    """Return, as PEM, those of the certificates that somebody has shown (DER) whose keys have these pins.

    Each is signed with that key: nobody else can make one that has it, and names another trust domain. That
    whoever shows a root holds a certificate below it is not proven.
    """
    names = frozenset(wanted)
    found = map(_root, shown)
    roots = {each for each in found if each is not None and key_digest(each.public_key()) in names}
    encoded = (each.public_bytes(serialization.Encoding.PEM) for each in roots)
    return b"".join(sorted(encoded))


def _root(der: bytes) -> x509.Certificate | None:
    try:
        certificate = x509.load_der_x509_certificate(der)
        certificate.verify_directly_issued_by(certificate)
        key_digest(certificate.public_key())
    except Exception:  # noqa: BLE001 - a stranger's bytes: what cannot be read is no root of ours
        return None
    return certificate
