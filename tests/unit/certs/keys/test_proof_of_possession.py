"""Tests of the proof of possession of a key, which only external issuers need."""

from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from certs.contract import CertificateRequest, Names, Usage
from certs.issuers.authority import CertificateAuthority
from certs.keys.proof_of_possession import OwnKey, SignedRequest

NAMES = Names("a.b.c", uris=("spiffe://x/y",), dns_names=("a.example",))


def test_request_is_signed_only_for_an_external_issuer(
    authority: CertificateAuthority, now: datetime
) -> None:
    """Our own CA needs no signed request, which would cost as much time as the certificate."""
    own = OwnKey(ec.generate_private_key(ec.SECP256R1()), NAMES)
    asked = CertificateRequest(Usage.SERVICE, NAMES, now, now + timedelta(days=1), own)
    assert b"BEGIN CERTIFICATE" in authority.issue(asked, now)
    assert "csr_pem" not in vars(own)
    assert asked.csr_pem is asked.csr_pem is own.csr_pem


def test_signed_request_proves_the_key_and_contains_the_names() -> None:
    """An external issuer reads only the PKCS#10 request."""
    own = OwnKey(ec.generate_private_key(ec.SECP256R1()), NAMES)
    assert SignedRequest(own.csr_pem).public_key() == own.public_key()
    request = x509.load_pem_x509_csr(own.csr_pem)
    subject_alternative_name = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert request.subject.rfc4514_string() == "CN=a.b.c"
    assert subject_alternative_name.get_values_for_type(x509.UniformResourceIdentifier) == ["spiffe://x/y"]
    assert subject_alternative_name.get_values_for_type(x509.DNSName) == ["a.example"]
    assert "PRIVATE" not in repr(own)
