"""Service certificates: what they say, how long they live, and that they are kept."""

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
    """Return how to start a manager on the state directory, as a restart does."""

    def started(jitter: Sequence[float] = (), issuer: CertificateAuthority = authority) -> CertificateManager:
        values = list(jitter)
        return CertificateManager(issuer, PairFiles(state), DAY, lambda: values.pop(0) if values else 0.0)

    return started


def pair_file(state: Path) -> Path:
    """Return where the bookstore's pair is kept."""
    return state / "services" / "bookstore" / "bookstore-v1" / "certificate.pem"


def test_a_service_certificate_says_exactly_what_it_must(
    start: Start, authority: CertificateAuthority, now: datetime
) -> None:
    """One SPIFFE URI, sorted DNS names, both usages, no CA, the root's key identifier, 24 hours."""
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


def test_an_identity_without_services_has_its_uri_alone(start: Start, now: datetime) -> None:
    """A pure client is certified without DNS names, however long its ServiceAccount's name."""
    client = ServiceIdentity(Namespace("n" * 63), ServiceAccountName("s" * 253))
    held = start().ensure(client, (), now)
    sans = (
        x509.load_pem_x509_certificate(held.chain_pem)
        .extensions.get_extension_for_class(x509.SubjectAlternativeName)
        .value
    )
    uri = f"spiffe://mesh.example/ns/{'n' * 63}/sa/{'s' * 253}"
    assert list(sans) == [x509.UniformResourceIdentifier(uri)]


def test_a_restart_reuses_what_is_stored(start: Start, state: Path, now: datetime) -> None:
    """The same serial, key and validity come back, from files that only their owner may read."""
    before = start().ensure(STORE, NAMES, now)
    path = pair_file(state)
    assert path.stat().st_mode & 0o777 == 0o600
    assert {parent.stat().st_mode & 0o777 for parent in path.parents[:3]} == {0o700}
    assert list(path.parent.iterdir()) == [path]
    assert start().ensure(STORE, NAMES, now + timedelta(hours=10)) == before


def test_what_falls_due_is_renewed_with_a_new_key(start: Start, state: Path, now: datetime) -> None:
    """After about half of its life a certificate is due; `ensure` then replaces it here and on disk."""
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


def test_new_names_mean_a_new_certificate(start: Start, now: datetime) -> None:
    """A changed set of DNS names is certified at once, after a restart too; order does not matter."""
    manager = start()
    first = manager.ensure(STORE, NAMES, now)
    assert manager.ensure(STORE, tuple(reversed(NAMES)), now) is first
    second = manager.ensure(STORE, NAMES[:1], now)
    assert (second.dns_names, second.serial != first.serial) == (NAMES[:1], True)
    assert start().ensure(STORE, NAMES, now).serial not in (first.serial, second.serial)


def test_a_stored_certificate_of_another_root_is_replaced(
    start: Start, tmp_path: Path, now: datetime
) -> None:
    """After the CA was replaced, no certificate of the old one is used."""
    before = start().ensure(STORE, NAMES, now)
    other = CertificateAuthority.open(tmp_path / "other", TrustDomain("mesh.example"), now)
    assert start(issuer=other).ensure(STORE, NAMES, now).serial != before.serial


def test_who_is_forgotten_and_comes_back_has_what_was_kept(start: Start, now: datetime) -> None:
    """It may be forgotten twice; the others are as they were."""
    manager = start()
    store, buyer = manager.ensure(STORE, NAMES, now), manager.ensure(BUYER, (), now)
    manager.forget(STORE)
    manager.forget(STORE)
    assert (manager.get(STORE), manager.get(BUYER)) == (None, buyer)
    assert manager.ensure(STORE, NAMES, now) == store


def _swap_key(content: bytes, other: bytes) -> bytes:
    end = content.index(b"-----BEGIN CERTIFICATE-----")
    return other[: other.index(b"-----BEGIN CERTIFICATE-----")] + content[end:]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content, _: content[:100], "must have exactly one private key (PEM, PKCS#8)"),
        (lambda _, __: b"", "must have exactly one private key (PEM, PKCS#8)"),  # the power has failed
        (lambda _, __: b"\0garbage", "must have exactly one private key (PEM, PKCS#8)"),
        (
            lambda content, _: content[: content.index(b"-----BEGIN CERTIFICATE-----")],
            "cannot be used: the file of the certificate has no readable certificate",
        ),
        (
            lambda content, _: content[:-80],
            "cannot be used: the file of the certificate has no readable certificate",
        ),
        (
            lambda content, _: content[:40] + b"!" + content[41:],
            "cannot be used: the private key cannot be read",
        ),
        (_swap_key, "cannot be used: the private key does not belong to the certificate"),
    ],
)
def test_a_corrupt_pair_is_replaced_with_a_warning(
    damage: Callable[[bytes, bytes], bytes], reason: str, start: Start, state: Path, now: datetime
) -> None:
    """Damage costs a new certificate and one warning, which holds nothing of the key."""
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


def test_a_pair_that_cannot_be_read_or_stored_is_an_error(start: Start, state: Path, now: datetime) -> None:
    """Where the file system refuses there is no certificate that a restart would lose: it is said."""
    pair_file(state).mkdir(parents=True)
    with pytest.raises(StateError, match=f"^{pair_file(state)} cannot be read: Is a directory$"):
        start().ensure(STORE, NAMES, now)


def test_a_failed_renewal_leaves_the_old_one_in_force(
    start: Start, authority: CertificateAuthority, now: datetime
) -> None:
    """While the issuer cannot sign, what was issued goes on, and stays due."""
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
    """No name leaves the state directory or reaches a certificate unchecked."""
    with pytest.raises(RequestError) as refused:
        start().ensure(identity, dns_names, now)
    assert str(refused.value) == sentence


def test_jitter_spreads_the_ends_of_life(start: Start, now: datetime) -> None:
    """The two extremes live 10 % shorter and longer, and equal jitter gives equal lives."""
    manager = start([-1.0, 1.0])
    assert manager.ensure(BUYER, (), now).not_after == now + DAY * 0.9
    assert manager.ensure(STORE, (), now).not_after == now + DAY * 1.1
    for outside in (-1.001, 1.001, float("nan")):
        with pytest.raises(ValueError, match="; must be from -1 to 1"):
            jittered(DAY, outside)


@given(st.integers())
def test_jitter_stays_within_its_share(seed: int) -> None:
    """Whatever the random source says, a validity stays within a tenth of itself."""
    validity = jittered(DAY, random.Random(seed).uniform(-1, 1))  # noqa: S311 - no secret
    assert DAY * 0.9 <= validity <= DAY * 1.1


def test_a_certificate_that_cannot_be_stored_is_in_force(start: Start, state: Path, now: datetime) -> None:
    """Or the mesh would end hours after its disk was full; a restart issues another one."""
    manager = start()
    with structlog.testing.capture_logs() as lines, short_files(100):
        held = manager.ensure(STORE, NAMES, now)
    assert manager.ensure(STORE, NAMES, now) is held is manager.get(STORE)
    assert list(pair_file(state).parent.iterdir()) == []
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("service certificate issued but not stored", "warning")
    ]
