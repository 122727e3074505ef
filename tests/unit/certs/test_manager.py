"""Tests of the manager of service certificates: content, validity, renewal and storage."""

import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from certs.errors import IssuerError, RequestError, StateError
from certs.issuers.authority import CertificateAuthority
from certs.manager import CertificateManager, jittered
from certs.renewal import renew_at
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain
from tests.tools.own_authority import own_authority
from tests.tools.volumes import short_files
from tests.unit.certs.leaf import LEAF

DAY = timedelta(hours=24)
BACK = timedelta(seconds=60)
STORE = ServiceIdentity(Namespace("bookstore"), ServiceAccountName("bookstore-v1"))
BUYER = ServiceIdentity(Namespace("bookbuyer"), ServiceAccountName("bookbuyer"))
NAMES = ("bookstore.bookstore", "bookstore.bookstore.svc", "bookstore.bookstore.svc.cluster.local")

Start = Callable[..., CertificateManager]


@pytest.fixture
def start(authority: CertificateAuthority, state: Path) -> Start:
    """Return a function that starts a manager on the state directory, as a restart does."""

    def started(jitter: Sequence[float] = (), issuer: CertificateAuthority = authority) -> CertificateManager:
        values = list(jitter)
        return CertificateManager(issuer, PairFiles(state), DAY, lambda: values.pop(0) if values else 0.0)

    return started


def pair_file(state: Path) -> Path:
    """Return the path of the bookstore's stored pair."""
    return state / "services" / "bookstore" / "bookstore-v1" / "certificate.pem"


def test_service_certificate_has_exactly_the_required_content(
    start: Start, authority: CertificateAuthority, now: datetime
) -> None:
    """It has one SPIFFE URI, sorted DNS names, both usages, the root's key identifier and 24 hours."""
    held = start().ensure(STORE, (NAMES[2], NAMES[0], NAMES[1], NAMES[0]), now)
    certificate = x509.load_pem_x509_certificate(held.chain_pem)
    issuer = x509.load_pem_x509_certificate(authority.trust_bundle())
    root_identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert [(e.critical, e.value) for e in certificate.extensions] == [
        *LEAF,
        (False, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])),
        (False, x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())),
        (False, x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(root_identifier)),
        (
            False,
            x509.SubjectAlternativeName(
                [
                    x509.UniformResourceIdentifier("spiffe://mesh.example/ns/bookstore/sa/bookstore-v1"),
                    *map(x509.DNSName, NAMES),
                ]
            ),
        ),
    ]
    assert certificate.subject.rfc4514_string() == "CN=service-1fd669f05426379b"
    assert (held.identity, held.serial) == (STORE, f"{certificate.serial_number:x}")
    assert (held.dns_names, held.not_before, held.not_after) == (NAMES, now - BACK, now + DAY)
    assert certificate.not_valid_before_utc == held.not_before
    assert certificate.not_valid_after_utc == held.not_after
    key = serialization.load_pem_private_key(held.key.reveal(), password=None)
    assert key.public_key() == certificate.public_key()


def test_identity_without_services_gets_a_certificate_with_only_its_uri(start: Start, now: datetime) -> None:
    """A pure client needs no DNS names, and the name of its ServiceAccount may have the maximum length."""
    client = ServiceIdentity(Namespace("n" * 63), ServiceAccountName("s" * 253))
    held = start().ensure(client, (), now)
    sans = (
        x509.load_pem_x509_certificate(held.chain_pem)
        .extensions.get_extension_for_class(x509.SubjectAlternativeName)
        .value
    )
    uri = f"spiffe://mesh.example/ns/{'n' * 63}/sa/{'s' * 253}"
    assert list(sans) == [x509.UniformResourceIdentifier(uri)]


def test_restart_reuses_the_stored_certificate(start: Start, state: Path, now: datetime) -> None:
    """Serial, key and validity are the same after a restart. Only the owner may read the file."""
    before = start().ensure(STORE, NAMES, now)
    path = pair_file(state)
    assert path.stat().st_mode & 0o777 == 0o600
    assert {parent.stat().st_mode & 0o777 for parent in path.parents[:3]} == {0o700}
    assert list(path.parent.iterdir()) == [path]
    assert start().ensure(STORE, NAMES, now + timedelta(hours=10)) == before


def test_due_certificate_is_renewed_with_a_new_key(start: Start, state: Path, now: datetime) -> None:
    """After about half of its life, `ensure` replaces the certificate in memory and on disk."""
    manager = start()
    first = manager.ensure(STORE, NAMES, now)
    assert manager.ensure(STORE, NAMES, now + timedelta(hours=10)) is first
    moment = renew_at(first)
    assert abs(moment - now - DAY / 2) < DAY / 19
    assert manager.ensure(STORE, NAMES, moment - timedelta(seconds=1)) is first
    second = manager.ensure(STORE, NAMES, moment)
    assert (second.serial != first.serial, second.key != first.key) == (True, True)
    assert manager.ensure(STORE, NAMES, moment) is manager.get(STORE) is second
    assert pair_file(state).read_bytes() == second.key.reveal() + second.chain_pem
    assert start().ensure(STORE, NAMES, moment) == second


def test_changed_dns_names_cause_a_new_certificate(start: Start, now: datetime) -> None:
    """A new set of DNS names is certified at once, also after a restart.

    The order of names does not matter.
    """
    manager = start()
    first = manager.ensure(STORE, NAMES, now)
    assert manager.ensure(STORE, tuple(reversed(NAMES)), now) is first
    second = manager.ensure(STORE, NAMES[:1], now)
    assert (second.dns_names, second.serial != first.serial) == (NAMES[:1], True)
    assert start().ensure(STORE, NAMES, now).serial not in (first.serial, second.serial)


def test_stored_certificate_of_another_root_is_replaced(start: Start, tmp_path: Path, now: datetime) -> None:
    """After a replacement of the CA, proxies would not trust certificates of the old one."""
    before = start().ensure(STORE, NAMES, now)
    other = own_authority(tmp_path / "other", TrustDomain("mesh.example"), now)
    assert start(issuer=other).ensure(STORE, NAMES, now).serial != before.serial


def test_forgotten_identity_that_returns_gets_its_stored_certificate(start: Start, now: datetime) -> None:
    """Forgetting twice is harmless, and does not affect other identities."""
    manager = start()
    store, buyer = manager.ensure(STORE, NAMES, now), manager.ensure(BUYER, (), now)
    manager.forget(STORE)
    manager.forget(STORE)
    assert (manager.get(STORE), manager.get(BUYER)) == (None, buyer)
    assert manager.ensure(STORE, NAMES, now) == store


def _swap_key(content: bytes, other: bytes) -> bytes:
    end = content.index(b"-----BEGIN CERTIFICATE-----")
    return other[: other.index(b"-----BEGIN CERTIFICATE-----")] + content[end:]


def test_replaced_certificate_is_logged_once(
    start: Start, authority: CertificateAuthority, now: datetime, tmp_path: Path
) -> None:
    """The reason is logged when a stored certificate is found unusable. A renewal has its own event."""
    start().ensure(STORE, NAMES, now)
    other = own_authority(tmp_path / "other", authority.trust_domain, now)
    manager = start(issuer=other)
    with structlog.testing.capture_logs() as logs:
        for at in (now, now + timedelta(hours=20)):
            manager.ensure(STORE, NAMES, at)
    assert [log["event"] for log in logs] == [
        "stored certificate replaced",
        "service certificate issued",
        "service certificate issued",
    ]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content, _: content[:100], "must have exactly one private key (PEM, PKCS#8)"),
        (lambda _, __: b"", "must have exactly one private key (PEM, PKCS#8)"),  # as after a power failure
        (lambda _, __: b"\0garbage", "must have exactly one private key (PEM, PKCS#8)"),
        (
            lambda content, _: content[: content.index(b"-----BEGIN CERTIFICATE-----")],
            "cannot be used: the file of the certificate lacks a readable certificate",
        ),
        (
            lambda content, _: content[:-80],
            "cannot be used: the file of the certificate lacks a readable certificate",
        ),
        (
            lambda content, _: content[:40] + b"!" + content[41:],
            "cannot be used: the private key cannot be read",
        ),
        (_swap_key, "cannot be used: the private key does not belong to the certificate"),
    ],
)
def test_corrupt_pair_is_replaced_with_a_warning(
    damage: Callable[[bytes, bytes], bytes], reason: str, start: Start, state: Path, now: datetime
) -> None:
    """A damaged file causes a new certificate and one warning, which contains no part of the key."""
    manager = start()
    before = manager.ensure(STORE, NAMES, now)
    other = manager.ensure(BUYER, (), now)
    path = pair_file(state)
    path.write_bytes(damage(path.read_bytes(), other.key.reveal() + other.chain_pem))
    with structlog.testing.capture_logs() as lines:
        after = start().ensure(STORE, NAMES, now)
    assert after.serial != before.serial
    assert [line for line in lines if line["log_level"] == "warning"] == [
        {"event": "stored certificate replaced", "log_level": "warning", "reason": f"{path} {reason}"}
    ]
    secret = b"".join(before.key.reveal().splitlines()[1:-1]).decode()
    assert not any(secret[at : at + 12] in str(lines) for at in range(len(secret) - 12))
    assert start().ensure(STORE, NAMES, now) == after


def test_pair_that_cannot_be_read_is_an_error(start: Start, state: Path, now: datetime) -> None:
    """The error of the file system is reported, because a new certificate could not be stored either."""
    pair_file(state).mkdir(parents=True)
    with pytest.raises(StateError, match=f"^{pair_file(state)} cannot be read: Is a directory$"):
        start().ensure(STORE, NAMES, now)


def test_failed_renewal_keeps_the_old_certificate(
    start: Start, authority: CertificateAuthority, now: datetime
) -> None:
    """While the issuer cannot sign, the old certificate remains in use."""
    manager = start()
    first = manager.ensure(STORE, NAMES, now)
    with pytest.raises(IssuerError):
        manager.ensure(STORE, NAMES, authority.not_after)
    assert manager.get(STORE) == first


@pytest.mark.parametrize(
    ("identity", "dns_names", "sentence"),
    [
        (
            ServiceIdentity(Namespace(".."), ServiceAccountName("a")),
            (),
            "namespace '..' is not a DNS-1123 label",
        ),
        (
            ServiceIdentity(Namespace("a"), ServiceAccountName("../b")),
            (),
            "ServiceAccount '../b' is not a DNS-1123 subdomain",
        ),
        (STORE, ("a b",), "DNS name 'a b' for bookstore/bookstore-v1 is not a DNS-1123 subdomain"),
    ],
)
def test_names_that_cannot_be_certified_are_refused(
    identity: ServiceIdentity, dns_names: tuple[str, ...], sentence: str, start: Start, now: datetime
) -> None:
    """An unchecked name could leave the state directory or end up in a certificate."""
    with pytest.raises(RequestError) as refused:
        start().ensure(identity, dns_names, now)
    assert str(refused.value) == sentence


def test_jitter_shortens_or_lengthens_a_validity_by_at_most_ten_percent(start: Start, now: datetime) -> None:
    """The extremes -1 and 1 give 90 % and 110 % of the validity, and values outside are refused."""
    manager = start([-1.0, 1.0])
    assert manager.ensure(BUYER, (), now).not_after == now + DAY * 0.9
    assert manager.ensure(STORE, (), now).not_after == now + DAY * 1.1
    for outside in (-1.001, 1.001, float("nan")):
        with pytest.raises(ValueError, match="; must be from -1 to 1"):
            jittered(DAY, outside)


@given(st.integers())
def test_jitter_of_any_random_value_stays_within_ten_percent(seed: int) -> None:
    """A validity stays within a tenth of its length, whatever number the random source gives."""
    validity = jittered(DAY, random.Random(seed).uniform(-1, 1))  # noqa: S311 - no secret
    assert DAY * 0.9 <= validity <= DAY * 1.1


def test_certificate_that_cannot_be_stored_is_used_from_memory(
    start: Start, state: Path, now: datetime
) -> None:
    """Otherwise a full disk would stop the mesh within hours. A warning is logged."""
    manager = start()
    with structlog.testing.capture_logs() as lines, short_files(100):
        held = manager.ensure(STORE, NAMES, now)
    assert manager.ensure(STORE, NAMES, now) is held is manager.get(STORE)
    assert list(pair_file(state).parent.iterdir()) == []
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("service certificate issued but not stored", "warning")
    ]
