"""Tests of proxy certificates: content, names of any length, and entries in the ledger."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given, settings
from hypothesis import strategies as st

from certs.contract import CertificateRequest, Names, Usage
from certs.errors import IssuerError, RequestError, StateError
from certs.issuers.authority import CertificateAuthority
from certs.keys.material import PeerCertificate
from certs.keys.proof_of_possession import SignedRequest
from certs.ledger.contract import Ledger
from certs.ledger.entry import LedgerEntry
from certs.ledger.sqlite import SqliteLedger
from certs.lifetimes import VALIDITY
from certs.peer import authorize, read_peer
from certs.proxy import issue_proxy
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName, TrustDomain
from tests.tools.hypothesis_profiles import examples
from tests.unit.certs.leaf import LEAF

UUID = ProxyUuid("5d1a4f0e-1f0c-4f5e-9c1d-0a5b6c7d8e9f")
LONG = ProxyName(UUID, ServiceName("s" * 63), Namespace("n" * 63))


@pytest.mark.filterwarnings("ignore:Attribute's length")  # raised when the test itself reads the subject
def test_proxy_certificate_has_exactly_the_required_content(
    authority: CertificateAuthority, ledger: Ledger, now: datetime
) -> None:
    """It has the exact common name of 164 characters, only clientAuth, no alternative name and 90 days."""
    issued = issue_proxy(authority, ledger, LONG, VALIDITY, now)
    certificate = x509.load_pem_x509_certificate(issued.chain_pem)
    issuer = x509.load_pem_x509_certificate(authority.trust_bundle())
    root_identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert [attribute.value for attribute in certificate.subject] == [f"{UUID}.{'s' * 63}.{'n' * 63}"]
    assert [(e.critical, e.value) for e in certificate.extensions] == [
        *LEAF,
        (False, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])),
        (False, x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())),
        (False, x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(root_identifier)),
    ]
    assert (issued.name, issued.not_after) == (LONG, now + timedelta(days=90))
    assert ledger.entries() == (
        LedgerEntry(issued.serial, str(LONG), UUID, now, issued.not_after, signer=authority.fingerprint),
    )
    assert read_peer(issued.chain_pem) == PeerCertificate(
        str(LONG), issued.serial, now - timedelta(seconds=60), issued.not_after, (), client_auth=True
    )


def test_long_names_are_read_without_warnings_and_without_new_filters(
    authority: CertificateAuthority, ledger: Ledger, now: datetime
) -> None:
    """The library warns about long names.

    This must not raise if all warnings are errors, and repeated reading must not add filters.
    """
    chain_pem = issue_proxy(authority, ledger, LONG, VALIDITY, now).chain_pem
    read_peer(chain_pem)
    before = len(warnings.filters)
    for _ in range(3):
        assert read_peer(chain_pem).common_name == str(LONG)
    assert len(warnings.filters) == before
    warnings.simplefilter("error")
    assert read_peer(chain_pem).common_name == str(LONG)


LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True) | st.sampled_from(
    ["a", "z" * 63]
)
NAMES = st.builds(ProxyName, LABELS.map(ProxyUuid), LABELS.map(ServiceName), LABELS.map(Namespace))


def test_any_name_is_read_back_from_its_certificate(
    authority: CertificateAuthority, ledger: Ledger, now: datetime
) -> None:
    """Names of three DNS labels of any length pass through certificate and ledger unchanged."""

    @settings(max_examples=examples(25), deadline=None)
    @given(NAMES)
    def comes_back(name: ProxyName) -> None:
        peer = read_peer(issue_proxy(authority, ledger, name, VALIDITY, now).chain_pem)
        assert authorize(peer, ledger.entry(peer.serial), now) == name

    comes_back()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            ProxyName(ProxyUuid("a"), ServiceName("B"), Namespace("c")),
            "common name 'a.B.c' is not <uuid>.<service>.<namespace> in DNS-1123 labels",
        ),
        (
            ProxyName(ProxyUuid("a.b"), ServiceName("c"), Namespace("")),
            "common name 'a.b.c.' is not <uuid>.<service>.<namespace> in DNS-1123 labels",
        ),
    ],
)
def test_names_of_another_form_are_refused(
    name: ProxyName, sentence: str, authority: CertificateAuthority, ledger: Ledger, now: datetime
) -> None:
    """A name that could not be read back is not issued, and leaves no entry in the ledger."""
    with pytest.raises(RequestError) as refused:
        issue_proxy(authority, ledger, name, VALIDITY, now)
    assert (str(refused.value), ledger.entries()) == (sentence, ())


def test_validity_of_zero_is_refused(authority: CertificateAuthority, ledger: Ledger, now: datetime) -> None:
    """A certificate that ends when it begins would be useless."""
    with pytest.raises(
        RequestError, match=r"^a validity of 0:00:00 is too short; it must be at least 1 second$"
    ):
        issue_proxy(authority, ledger, LONG, timedelta(0), now)


class WrongIssuer:
    """An issuer that changes the request before our CA signs it."""

    trust_domain = TrustDomain("mesh.example")
    fingerprint = other = leaving = ""
    not_after = datetime.max.replace(tzinfo=UTC)

    def __init__(
        self, authority: CertificateAuthority, change: Callable[[CertificateRequest], CertificateRequest]
    ) -> None:
        self._authority = authority
        self._change = change

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign the changed request."""
        return self._authority.issue(self._change(request), now)

    def trust_bundle(self) -> bytes:
        """Return our CA's root."""
        return self._authority.trust_bundle()

    def signing_bundle(self) -> bytes:
        """Return our CA's root."""
        return self._authority.signing_bundle()

    def trusts(self, signer: str) -> bool:
        """Return the answer of our CA."""
        return self._authority.trusts(signer)

    def signer_of(self, chain_pem: bytes) -> str:
        """Return the answer of our CA."""
        return self._authority.signer_of(chain_pem)


def test_certificate_with_other_content_than_requested_is_refused(
    authority: CertificateAuthority, ledger: Ledger, now: datetime
) -> None:
    """Another name, usage or key in the issuer's answer means no certificate and no ledger entry."""
    key = ec.generate_private_key(ec.SECP256R1())
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    other_csr = csr.public_bytes(serialization.Encoding.PEM)
    answers = [
        WrongIssuer(authority, lambda asked: replace(asked, names=Names("other.shop.default"))),
        WrongIssuer(authority, lambda asked: replace(asked, usage=Usage.SERVICE)),
        WrongIssuer(authority, lambda asked: replace(asked, possession=SignedRequest(other_csr))),
    ]
    sentences = []
    for issuer in answers:
        with pytest.raises(IssuerError) as refused:
            issue_proxy(issuer, ledger, ProxyName.parse("u1.shop.default"), VALIDITY, now)
        sentences.append(str(refused.value))
    answer = "the issuer's answer for u1.shop.default"
    assert sentences == [
        f"{answer} has names that differ from the request: none",
        (f"{answer} has other key usages than requested; check which extended key usages the issuer allows"),
        f"{answer} is for another key than requested",
    ]
    assert ledger.entries() == ()


def test_certificate_that_the_ledger_cannot_record_is_not_issued(
    authority: CertificateAuthority, ledger: SqliteLedger, now: datetime
) -> None:
    """Only a certificate with a ledger entry can be revoked and authorised."""
    ledger.close()
    with pytest.raises(StateError, match="cannot be used: Cannot operate on a closed database"):
        issue_proxy(authority, ledger, LONG, VALIDITY, now)
