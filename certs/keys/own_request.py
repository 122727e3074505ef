"""A key that is made where it stays, and the signing request for it."""

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs.keys.material import PrivateKey


def new_key() -> PrivateKey:
    """Make an ECDSA P-256 key."""
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    made = ec.generate_private_key(ec.SECP256R1())
    return PrivateKey(made.private_bytes(encoding, form, serialization.NoEncryption()))


def request_for(key: PrivateKey) -> bytes:
    """Return a PKCS#10 request (DER) that proves a key, and names nobody: whoever signs knows whom.

    Raises ValueError, with nothing of the key in it, where that is none of ours.
    """
    try:
        private = serialization.load_pem_private_key(key.reveal(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("the private key cannot be read") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError("the private key is not an ECDSA key")  # noqa: TRY004 - as what cannot be read
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
