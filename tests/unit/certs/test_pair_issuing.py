"""Tests of issuing a pair: back-dating, serials, renewal times, and checks of the issuer's answer."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from certs.contract import CertificateRequest, Names, Usage
from certs.errors import IssuerError
from certs.issuers.authority import CertificateAuthority
from certs.keys.pair import KeyPairOptions, Pair, issue_pair
from certs.keys.profile import PURPOSES, alternative_names, key_usage, subject
from certs.renewal import alarm_at, renew_at
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority
from tests.unit.certs.issuers.example_cas import Ca, ca

DAY = timedelta(days=1)
NAMES = Names("service-1", uris=("spiffe://mesh.example/ns/shop/sa/store",), dns_names=("store.shop",))


def _made(issuer: CertificateAuthority, now: datetime, making: KeyPairOptions) -> Pair:
    return issue_pair(issuer, Usage.SERVICE, NAMES, DAY, now, making)


def test_certificate_is_backdated_by_the_configured_time(
    authority: CertificateAuthority, now: datetime
) -> None:
    """The default is one minute, so that clocks may differ a little."""
    assert _made(authority, now, KeyPairOptions()).leaf.not_before == now - timedelta(seconds=60)
    made = _made(authority, now, KeyPairOptions(backdated=timedelta(minutes=5)))
    assert made.leaf.not_before == now - timedelta(minutes=5)


@pytest.mark.parametrize("seconds", [10, 59, 60, 300, 3600])
@pytest.mark.parametrize("backdated", [0, 60, 300])
def test_new_certificate_of_any_validity_is_not_due_for_renewal(
    authority: CertificateAuthority, now: datetime, seconds: int, backdated: int
) -> None:
    """A new certificate serves at least a third of its validity.

    The back-dated time before its issue does not count.
    """
    life, making = timedelta(seconds=seconds), KeyPairOptions(backdated=timedelta(seconds=backdated))
    for _ in range(10):  # the time of renewal depends on the random serial
        made = issue_pair(authority, Usage.SERVICE, NAMES, life, now, making).leaf
        assert now + life / 3 < renew_at(made) < now + life * 0.6
        assert alarm_at(made) > now + life / 2


def test_serials_have_128_random_bits(authority: CertificateAuthority, now: datetime) -> None:
    """Each bit has both values in 64 serials, and no serial is 0."""
    made = (_made(authority, now, KeyPairOptions()).chain_pem for _ in range(64))
    serials = [x509.load_pem_x509_certificate(item).serial_number for item in made]
    assert all(0 < serial < 2**128 for serial in serials)
    for bit in range(128):
        assert {serial >> bit & 1 for serial in serials} == {0, 1}


class _Issuer:
    """An authority that changes the request, or has another trust bundle."""

    def __init__(
        self,
        authority: CertificateAuthority,
        change: Callable[[CertificateRequest], CertificateRequest] = lambda asked: asked,
        bundle: bytes = b"",
    ) -> None:
        self._authority, self._change = authority, change
        self._bundle = bundle or authority.trust_bundle()

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the authority's trust domain."""
        return self._authority.trust_domain

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign the changed request."""
        return self._authority.issue(self._change(request), now)

    def trust_bundle(self) -> bytes:
        """Return the given bundle, or the authority's."""
        return self._bundle

    def signing_bundle(self) -> bytes:
        """Return the same bundle as `trust_bundle`."""
        return self._bundle


def _moved(hours: int) -> Callable[[CertificateRequest], CertificateRequest]:
    by = timedelta(hours=hours)
    return lambda asked: replace(asked, not_before=asked.not_before + by, not_after=asked.not_after + by)


def _longer(asked: CertificateRequest) -> CertificateRequest:
    return replace(asked, not_after=asked.not_after + DAY)


def test_answer_of_a_slow_issuer_is_accepted(
    authority: CertificateAuthority, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its certificate may be valid only from the signing, which is later than the request."""
    passed = [0.0]
    monkeypatch.setattr("certs.keys.pair.time", SimpleNamespace(monotonic=lambda: passed[0]))

    def slow(asked: CertificateRequest) -> CertificateRequest:
        passed[0] += 40
        return replace(asked, not_before=now + timedelta(seconds=39))

    assert issue_pair(_Issuer(authority, slow), Usage.SERVICE, NAMES, DAY, now).leaf.not_before > now


def test_answer_that_differs_from_the_request_is_refused(
    authority: CertificateAuthority, tmp_path: Path, now: datetime
) -> None:
    """Another time, an additional name, a longer validity or an unknown root is an error.

    The message says what differs. Only a missing common name is accepted.
    """
    other = own_authority(tmp_path / "other", authority.trust_domain, now).trust_bundle()
    more = replace(NAMES, uris=(*NAMES.uris, "spiffe://mesh.example/ns/shop/sa/x"))
    cases = [
        (_Issuer(authority, _moved(1)), "is valid from 2031-05-06 08:07:09.*one of the two clocks is wrong"),
        (_Issuer(authority, _moved(-25)), "expired at 2031-05-06 06:08:09.*one of the two clocks is wrong"),
        (
            _Issuer(authority, lambda asked: replace(asked, names=more)),
            "names that differ from the request: spiffe://",
        ),
        (_Issuer(authority, _longer), "is valid until 2031-05-08 .*, longer than requested: 2031-05-07"),
        (
            _Issuer(authority, bundle=other),
            (
                "lacks a chain to a root of the issuer's own bundle; perhaps intermediate "
                "certificates are missing"
            ),
        ),
    ]
    for issuer, sentence in cases:
        with pytest.raises(IssuerError, match=sentence):
            issue_pair(issuer, Usage.SERVICE, NAMES, DAY, now)
    later = _Issuer(authority, lambda asked: replace(asked, names=replace(NAMES, common_name="")))
    assert issue_pair(later, Usage.SERVICE, NAMES, DAY, now).leaf.names.common_name == ""


class _Liberal(_Issuer):
    """An issuer that adds extensions to the requested ones, or replaces them."""

    def __init__(self, own: Ca, authority: CertificateAuthority, *extensions: x509.ExtensionType) -> None:
        super().__init__(authority, bundle=own.pem)
        self._own, self._extensions = own, extensions

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign the request with the additional extensions."""
        names = alternative_names(request.names)
        assert names is not None
        own = names, x509.ExtendedKeyUsage(PURPOSES[request.usage])
        extensions = {extension_type.oid: extension_type for extension_type in (*own, *self._extensions)}
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject(request.names.common_name))
            .issuer_name(self._own.certificate.subject)
            .public_key(x509.load_pem_x509_csr(request.csr_pem).public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(request.not_before)
            .not_valid_after(request.not_after)
        )
        for extension in extensions.values():
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._own.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def test_answer_with_a_ca_certificate_or_other_kinds_of_names_is_refused(
    authority: CertificateAuthority, now: datetime
) -> None:
    """A sidecar with a CA certificate could sign for every identity of the mesh."""
    own = ca("own", now)
    asked = alternative_names(NAMES)
    assert asked is not None
    mail = x509.SubjectAlternativeName([*asked, x509.RFC822Name("a@mesh.example")])
    leaf = x509.BasicConstraints(ca=False, path_length=None), key_usage(authority=False)
    assert issue_pair(_Liberal(own, authority, *leaf), Usage.SERVICE, NAMES, DAY, now).leaf.names == NAMES
    for extension, sentence in (
        (
            x509.BasicConstraints(ca=True, path_length=None),
            "is a CA certificate, which may sign other certificates",
        ),
        (key_usage(authority=True), "is a CA certificate, which may sign other certificates"),
        (mail, "has kinds of names that were not requested: RFC822Name"),
    ):
        with pytest.raises(IssuerError, match=f"the issuer's answer for service-1 {sentence}"):
            issue_pair(_Liberal(own, authority, extension), Usage.SERVICE, NAMES, DAY, now)
