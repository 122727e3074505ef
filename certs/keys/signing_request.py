"""Signing requests (PKCS#10) of strangers: a public key, and the proof that they have the private one.

Names, extensions and attributes of a request are ignored, because the identity is decided elsewhere. Our own
requests, for keys made by an agent, are without names.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from certs.errors import RequestError
from certs.keys.material import PrivateKey
from certs.keys.proof_of_possession import written
from meshwright.tls.pem import UNREADABLE

MOST_BYTES: Final = 16 * 1024
"""Limit of a request's size: ten times the size of a request with the longest accepted key."""

LEAST_RSA_BITS: Final = 2048
MOST_RSA_BITS: Final = 4096
_LEAST_EXPONENT: Final = 65537
_MOST_EXPONENT: Final = 2**33 - 1
"""Limit of BoringSSL: the exponent decides the cost of verifying a stranger's signature."""
CURVES: Final = ("secp256r1", "secp384r1")
"""Curves with which BoringSSL, as built into Envoy and gRPC, lets a client sign a handshake."""

_RIGHT: Final = (
    f"must be ECDSA on P-256 or P-384, or RSA of {LEAST_RSA_BITS} to {MOST_RSA_BITS} bits with an exponent "
    f"from {_LEAST_EXPONENT} to {_MOST_EXPONENT}"
)
_SIGNED: Final = "must be SHA-256, SHA-384 or SHA-512"
_DIGESTS: Final = (hashes.SHA256, hashes.SHA384, hashes.SHA512)


@dataclass(frozen=True, slots=True)
class SigningRequest:
    """A PKCS#10 request with an acceptable key. `key_digest` (SHA-256, hexadecimal) identifies the key."""

    csr_pem: bytes = field(repr=False)
    key_digest: str


def judged(der: bytes) -> SigningRequest:
    """Return a parsed request (DER) if acceptable for signing. Raises RequestError with the accepted kinds.

    The key must be strong enough, and must have signed the request with a secure hash.
    """
    if len(der) > MOST_BYTES:
        raise RequestError(f"the signing request has {len(der)} bytes; at most {MOST_BYTES} are allowed")
    try:
        request = x509.load_der_x509_csr(der)
        key = request.public_key()
    except UnsupportedAlgorithm as error:
        raise RequestError(f"the signing request has an unsupported type of key: the key {_RIGHT}") from error
    except UNREADABLE as error:
        raise RequestError(
            f"the signing request is not PKCS#10 in DER with a public key: the key {_RIGHT}"
        ) from error
    _require_strong(key)
    _require_proven(request)
    return SigningRequest(request.public_bytes(serialization.Encoding.PEM), key_digest(key))


def key_digest(key: CertificatePublicKeyTypes) -> str:
    """Return the SHA-256 of a public key (SubjectPublicKeyInfo), in hexadecimal."""
    return hashlib.sha256(written(key)).hexdigest()


def _require_strong(key: CertificatePublicKeyTypes) -> None:
    match key:
        case ec.EllipticCurvePublicKey():
            if key.curve.name in CURVES:
                return
            result = f"ECDSA on {key.curve.name}"
        case rsa.RSAPublicKey():
            exponent = key.public_numbers().e
            is_borne = _LEAST_EXPONENT <= exponent <= _MOST_EXPONENT
            if is_borne and LEAST_RSA_BITS <= key.key_size <= MOST_RSA_BITS:
                return
            result = f"RSA of {key.key_size} bits with the exponent {str(exponent)[:20]}"
        case _:
            result = f"of the kind {type(key).__name__.removesuffix('PublicKey')}"
    raise RequestError(f"the key of the signing request is {result}: it {_RIGHT}")


def _require_proven(request: x509.CertificateSigningRequest) -> None:
    try:
        digest = request.signature_hash_algorithm
        proven = request.is_signature_valid
    except UNREADABLE as error:
        raise RequestError(
            f"the signing request has an unknown signature algorithm: the hash {_SIGNED}"
        ) from error
    if not isinstance(digest, _DIGESTS):
        name = "no hash" if digest is None else digest.name
        raise RequestError(f"the signing request is signed with {name}: the hash {_SIGNED}")
    if not proven:
        raise RequestError("the signing request is not signed with its own key")


def new_key() -> PrivateKey:
    """Create an ECDSA P-256 key."""
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    made = ec.generate_private_key(ec.SECP256R1())
    return PrivateKey(made.private_bytes(encoding, form, serialization.NoEncryption()))


def request_for(key: PrivateKey) -> bytes:
    """Return a PKCS#10 request (DER) for a key, with an empty subject: the signer sets the names.

    Raises ValueError, without key material, for a key of another kind.
    """
    try:
        private = serialization.load_pem_private_key(key.reveal(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("the private key cannot be read") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError("the private key is not an ECDSA key")  # noqa: TRY004 - as what cannot be read
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
