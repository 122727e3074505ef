"""Proofs that a requester has the private key."""

from dataclasses import dataclass, field
from functools import cached_property

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from certs.contract import Names
from certs.errors import RequestError
from certs.keys.profile import alternative_names, subject
from meshwright.tls.pem import UNREADABLE


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A PKCS#10 request (PEM), which contains the public key and is signed with the private one."""

    csr_pem: bytes = field(repr=False)

    def public_key(self) -> bytes:
        """Return the public key (DER).

        Raises RequestError for a malformed request or a wrong signature.
        """
        try:
            request = x509.load_pem_x509_csr(self.csr_pem)
            proven = request.is_signature_valid
        except UNREADABLE as error:
            raise RequestError("the signing request is not PKCS#10 in PEM") from error
        if not proven:
            raise RequestError("the signing request is not signed with its own key")
        return written(request.public_key())


class OwnKey:
    """A key made in this process; an issuer in the same process needs no proof.

    Signing and verifying a request would add half of the cost of a certificate.
    """

    def __init__(self, private: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, names: Names) -> None:
        self._private = private
        self._names = names

    def public_key(self) -> bytes:
        """Return the public key of the pair (DER)."""
        return written(self._private.public_key())

    @cached_property
    def csr_pem(self) -> bytes:
        """Return a PKCS#10 request (PEM) for the names of the certificate, for a remote issuer."""
        builder = x509.CertificateSigningRequestBuilder().subject_name(subject(self._names.common_name))
        extension = alternative_names(self._names)
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def written(key: CertificatePublicKeyTypes) -> bytes:
    """Return a public key as SubjectPublicKeyInfo (DER)."""
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
