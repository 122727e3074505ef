"""Checks of a certificate chain (PEM) and its private key (PEM) as a pair; errors never quote them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from meshwright.tls.pem import PLAIN, certificates_in, is_plain

_CURVES: Final = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class LeafFacts:
    """Public facts of a certificate: sorted DNS names in lower case, and the first and last valid second."""

    dns_names: tuple[str, ...]
    not_before: datetime
    not_after: datetime


def require_match(chain_pem: bytes, key_pem: bytes) -> x509.Certificate:
    """Return the first certificate of a chain. Raises ValueError unless the key belongs to it."""
    try:
        certificate = certificates_in(chain_pem)[0]
    except ValueError:
        raise ValueError("the file of the certificate lacks a readable certificate") from None
    try:
        private = serialization.load_pem_private_key(key_pem, password=None)
    except TypeError:
        raise ValueError("the private key is encrypted; it must be PEM without a passphrase") from None
    except ValueError:
        raise ValueError("the private key cannot be read") from None
    if private.public_key() != certificate.public_key():
        raise ValueError("the private key does not belong to the certificate")
    return certificate


def require_shown(chain_pem: bytes, key_pem: bytes) -> LeafFacts:
    """Return the facts of a pair's first certificate; raise ValueError for a pair that Envoy would refuse.

    The chain is the certificate, then any intermediates. Validity in time is not checked: a proxy shows an
    expired certificate too, and clients say best what is wrong with it.
    """
    if not is_plain(chain_pem) or not is_plain(key_pem):
        raise ValueError(f"in the certificate or the key {PLAIN}")
    certificate = require_match(chain_pem, key_pem)
    match certificate.public_key():
        case rsa.RSAPublicKey() as key if key.key_size >= _RSA_BITS:
            return _facts(certificate)
        case ec.EllipticCurvePublicKey() as key if isinstance(key.curve, _CURVES):
            return _facts(certificate)
        case _:
            text = (
                f"the key is neither RSA with {_RSA_BITS} bits or more nor ECDSA with P-256, P-384 or P-521"
            )
            raise ValueError(text)


def _facts(certificate: x509.Certificate) -> LeafFacts:
    # Clients compare the subject alternative names alone (RFC 9525, 2), and not the subject.
    names: set[str] = set()
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            names.update(map(str.lower, extension.value.get_values_for_type(x509.DNSName)))
    return LeafFacts(tuple(sorted(names)), certificate.not_valid_before_utc, certificate.not_valid_after_utc)
