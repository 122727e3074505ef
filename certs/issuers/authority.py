"""The mesh's own certificate authority, which signs below one root."""

from datetime import datetime
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_public_key

from certs.contract import CertificateRequest, Usage
from certs.errors import IssuerError
from certs.issuers.root import Root
from certs.keys.leaf import is_signed_by_bundle
from certs.keys.profile import PURPOSES, alternative_names, key_usage, subject
from certs.keys.serial import new_serial
from meshwright.mesh.names import TrustDomain


class CertificateAuthority:
    """An Authority with its key in this process. The record of its certificates is the ledger."""

    def __init__(self, root: Root, trust_domain: TrustDomain) -> None:
        self._root = root
        self._trust_domain = trust_domain
        self._bundle = root.above.roots.pem
        self._fingerprint = root.fingerprint
        self._begun = {usage: _begun(root, usage) for usage in Usage}
        self._key_identifier = _authority_key_identifier(root)

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain of the certified identities."""
        return self._trust_domain

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the root's public key."""
        return self._fingerprint

    @property
    def other(self) -> str:
        """Return "": this authority has only the signing root, and never a second one."""
        return ""

    @property
    def leaving(self) -> str:
        """Return the fingerprint of the only root, which this authority never changes."""
        return self.fingerprint

    @property
    def not_after(self) -> datetime:
        """Return the earliest end of the CA and the CAs above, which limits every certificate."""
        return self._root.above.not_after

    def trust_bundle(self) -> bytes:
        """Return the root certificate as PEM, or the roots given with an intermediate."""
        return self._bundle

    def signing_bundle(self) -> bytes:
        """Return the trust bundle."""
        return self.trust_bundle()

    def trusts(self, signer: str) -> bool:
        """Return True for every signer, because TLS accepts only certificates below the only root."""
        del signer
        return True

    def signer_of(self, chain_pem: bytes) -> str:
        """Return the root's fingerprint if this root has signed the certificate, else ""."""
        return self.fingerprint if is_signed_by_bundle(chain_pem, self.trust_bundle()) else ""

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign a request (see Issuer). Of the PKCS#10 request only the public key is used.

        The certificate ends with the CA at the latest. Raises IssuerError if the CA has expired, and
        RequestError for a PKCS#10 request with a syntax error or a wrong signature.
        """
        if now >= self.not_after:
            raise IssuerError(f"the CA expired at {self.not_after} and cannot sign; replace it")
        certificate = self._unsigned(request).sign(self._root.key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM) + self._root.above.chain_pem

    def _unsigned(self, request: CertificateRequest) -> x509.CertificateBuilder:
        public_key = cast("CertificatePublicKeyTypes", load_der_public_key(request.possession.public_key()))
        builder = (
            self._begun[request.usage]
            .subject_name(subject(request.names.common_name))
            .public_key(public_key)
            .serial_number(new_serial())
            .not_valid_before(request.not_before)
            .not_valid_after(min(request.not_after, self.not_after))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(self._key_identifier, critical=False)
        )
        names = alternative_names(request.names)
        return builder if names is None else builder.add_extension(names, critical=False)


def _begun(root: Root, usage: Usage) -> x509.CertificateBuilder:
    """Return a builder with the extensions common to a root's certificates for one usage.

    Builders are immutable.
    """
    return (
        x509.CertificateBuilder()
        .issuer_name(root.certificate.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(PURPOSES[usage]), critical=False)
    )


def _authority_key_identifier(root: Root) -> x509.AuthorityKeyIdentifier:
    """Return the root's own key identifier; an external root may use another than our hash."""
    try:
        own = root.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(root.key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)
