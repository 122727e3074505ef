"""A certificate with its private key: how one is made, and that the two belong together."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from certs.errors import IssuerError, RequestError
from certs.issuers.contract import CertificateRequest, Issuer, Names, Usage
from certs.leaf import Leaf, read_leaf
from certs.material import PrivateKey
from certs.profile import alternative_names, subject

BACKDATED: Final = timedelta(seconds=60)
"""How far before its making a certificate is valid, for peers whose clocks are a little behind."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate chain (PEM, leaf first), what its leaf says, and the leaf's private key."""

    leaf: Leaf
    chain_pem: bytes = field(repr=False)
    key: PrivateKey = field(repr=False)


def issue_pair(issuer: Issuer, usage: Usage, names: Names, lifetime: timedelta, now: datetime) -> Pair:
    """Make a new ECDSA P-256 key and have a certificate for it signed; nothing is stored.

    Valid from BACKDATED before `now` until `lifetime` after it. No key ever serves two certificates.
    Raises IssuerError also where the issuer's answer is not what was asked for.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    leaf, chain_pem = sign(issuer, usage, names, lifetime, _signing_request(key, names), now)
    return Pair(leaf, chain_pem, _pkcs8(key))


def sign(
    issuer: Issuer, usage: Usage, names: Names, lifetime: timedelta, csr_pem: bytes, now: datetime
) -> tuple[Leaf, bytes]:
    """Have a certificate signed for the key of a PKCS#10 request; return what it says, and its chain (PEM).

    Validity and errors are those of `issue_pair`; one of another key is none that was asked for.
    """
    if lifetime < timedelta(seconds=1):
        raise RequestError(f"a validity of {lifetime} is too short: one second is the least")
    second = now.replace(microsecond=0)
    request = CertificateRequest(
        usage,
        names,
        not_before=second - BACKDATED,
        not_after=(second + lifetime).replace(microsecond=0),
        csr_pem=csr_pem,
    )
    chain_pem = issuer.issue(request, now)
    try:
        leaf = read_leaf(chain_pem)
        same_key = x509.load_pem_x509_certificate(chain_pem).public_key() == _key_of(csr_pem)
    except ValueError as error:
        raise IssuerError(f"the issuer's answer for {names.common_name} cannot be used: {error}") from error
    if not same_key:
        raise IssuerError(f"the issuer's answer for {names.common_name} is for another key than asked")
    if leaf.names != names or not leaf.serves(usage):
        raise IssuerError(f"the issuer's answer for {names.common_name} has other names or usages than asked")
    return leaf, chain_pem


def _key_of(csr_pem: bytes) -> CertificatePublicKeyTypes:
    return x509.load_pem_x509_csr(csr_pem).public_key()


def _signing_request(key: ec.EllipticCurvePrivateKey, names: Names) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject(names.common_name))
    extension = alternative_names(names)
    if extension is not None:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _pkcs8(key: ec.EllipticCurvePrivateKey) -> PrivateKey:
    return PrivateKey(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def matched_pair(chain_pem: bytes, key: PrivateKey) -> Pair:
    """Put a pair together; raise ValueError, with nothing of the key in it, where they do not belong."""
    try:
        certificate = x509.load_pem_x509_certificates(chain_pem)[0]
    except ValueError:
        raise ValueError("there is no certificate that can be read") from None
    try:
        private = serialization.load_pem_private_key(key.reveal(), password=None)
    except (ValueError, TypeError):
        raise ValueError("the private key cannot be read") from None
    if private.public_key() != certificate.public_key():
        raise ValueError("the private key does not belong to the certificate")
    return Pair(read_leaf(chain_pem), chain_pem, key)
