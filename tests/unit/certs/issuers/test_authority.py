"""Tests of the CA: the content of its certificate, its creation, and each fault of its files."""

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from certs.contract import CertificateRequest, Issuer, Names, Usage
from certs.errors import IssuerError, RequestError, StateError
from certs.issuers import authority as authorities
from certs.issuers import root
from certs.issuers.authority import CertificateAuthority
from certs.keys.leaf import is_signed_by_bundle
from certs.keys.pair import issue_pair
from certs.keys.proof_of_possession import SignedRequest
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority

DOMAIN = TrustDomain("mesh.example")


def mode(path: Path) -> int:
    """Return the permission bits of a file."""
    return path.stat().st_mode & 0o777


def test_root_certificate_has_exactly_the_required_content(
    authority: CertificateAuthority, now: datetime
) -> None:
    """The test fixes every extension, both ends of the validity, the curve and the hash of a new root."""
    certificate = x509.load_pem_x509_certificate(authority.trust_bundle())
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key)
    assert key.curve.name == "secp256r1"
    assert isinstance(certificate.signature_hash_algorithm, hashes.SHA256)
    assert certificate.subject == certificate.issuer
    assert certificate.subject.rfc4514_string() == f"CN=Meshwright CA {identifier.digest.hex()[:16]}"
    assert certificate.not_valid_before_utc == now - timedelta(seconds=60)
    assert certificate.not_valid_after_utc == now + timedelta(days=3652) == authority.not_after
    assert [(e.critical, e.value) for e in certificate.extensions] == [
        (True, x509.BasicConstraints(ca=True, path_length=0)),
        (
            True,
            x509.KeyUsage(
                digital_signature=False,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            ),
        ),
        (False, identifier),
        (False, x509.SubjectAlternativeName([x509.UniformResourceIdentifier("spiffe://mesh.example")])),
    ]


def test_root_is_private_and_loaded_at_later_starts(
    authority: CertificateAuthority, state: Path, now: datetime
) -> None:
    """Folders have mode 0700 and files 0600.

    No temporary file is left, and a second start has the same root.
    """
    assert [mode(path) for path in (state, state / "ca")] == [0o700, 0o700]
    assert {path.name: mode(path) for path in (state / "ca").iterdir()} == {"ca.key": 0o600, "ca.pem": 0o600}
    assert sorted(path.name for path in state.iterdir()) == [".ca.lock", "ca"]
    again = own_authority(state, DOMAIN, now + timedelta(days=1))
    assert again.trust_bundle() == authority.trust_bundle()


def test_unfinished_ca_of_a_killed_process_is_never_used(state: Path, now: datetime) -> None:
    """Its temporary files and an empty folder do not prevent the next start."""
    (state / ".ca.new").mkdir(parents=True)
    (state / ".ca.new" / "ca.key").write_text("half a key")
    (state / ".ca.new" / ".ca.pem.x1y2").write_text("half a certificate")
    (state / "ca").mkdir()
    own_authority(state, DOMAIN, now)
    assert sorted(path.name for path in state.iterdir()) == [".ca.lock", "ca"]
    assert sorted(path.name for path in (state / "ca").iterdir()) == ["ca.key", "ca.pem"]


def open_and_send(state: Path, now: datetime, results: "multiprocessing.Queue[bytes]") -> None:
    """Open the CA in another process and send its root."""
    results.put(own_authority(state, DOMAIN, now).trust_bundle())


def test_two_processes_that_start_together_create_one_root(state: Path, now: datetime) -> None:
    """Both processes and a later one have the same root."""
    spawn = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[bytes] = spawn.Queue()
    processes = [spawn.Process(target=open_and_send, args=(state, now, results)) for _ in range(2)]
    for process in processes:
        process.start()
    roots = {results.get(timeout=30) for _ in processes}
    for process in processes:
        process.join()
    assert roots == {own_authority(state, DOMAIN, now).trust_bundle()}


def _pem(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey, passphrase: bytes = b"") -> bytes:
    encryption = (
        serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    )
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def _remove(name: str) -> Callable[[Path, CertificateAuthority], None]:
    return lambda ca, _: (ca / name).unlink()


def _put(name: str, content: bytes) -> Callable[[Path, CertificateAuthority], None]:
    def put(ca: Path, _: CertificateAuthority) -> None:
        (ca / name).write_bytes(content)

    return put


def _put_leaf(ca: Path, authority: CertificateAuthority) -> None:
    moment = authority.not_after - timedelta(days=3652)
    pair = issue_pair(authority, Usage.PROXY, Names("a.b.c"), timedelta(days=1), moment)
    (ca / "ca.pem").write_bytes(pair.chain_pem)


def _put_two(ca: Path, authority: CertificateAuthority) -> None:
    (ca / "ca.pem").write_bytes(authority.trust_bundle() * 2)


def _make_folder(ca: Path, _: CertificateAuthority) -> None:
    (ca / "ca.key").unlink()
    (ca / "ca.key").mkdir()


AWAY = (
    "restore the right files, or move the directory away so that the server creates a "
    "new CA (then all proxy certificates must be issued again)"
)

TWO = "CA certificate {ca}/ca.pem has 2 certificates; it must have exactly one, or {rest}"


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_remove("ca.pem"), "{ca}/ca.pem is missing, but {ca}/ca.key exists; " + AWAY),
        (_remove("ca.key"), "{ca}/ca.key is missing, but {ca}/ca.pem exists; " + AWAY),
        (_put("ca.key", b"garbage"), "CA key {ca}/ca.key is not a private key in PEM; " + AWAY),
        (_put("ca.pem", b"garbage"), "CA certificate {ca}/ca.pem is not a certificate in PEM; " + AWAY),
        (
            _put("ca.key", _pem(ec.generate_private_key(ec.SECP256R1()))),
            "CA key {ca}/ca.key does not match CA certificate {ca}/ca.pem; " + AWAY,
        ),
        (
            _put("ca.key", _pem(ec.generate_private_key(ec.SECP256R1()), b"secret")),
            "CA key {ca}/ca.key is encrypted; it must be PEM without a passphrase",
        ),
        (
            _put("ca.key", _pem(ed25519.Ed25519PrivateKey.generate())),
            "CA key {ca}/ca.key is neither an ECDSA nor an RSA key; " + AWAY,
        ),
        (_put_leaf, "{ca}/ca.pem is not a CA certificate: it may not sign other certificates"),
        (_put_two, TWO),
        (_make_folder, "{ca}/ca.key cannot be read: Is a directory"),
    ],
)
def test_each_fault_of_the_ca_files_has_its_own_message(
    damage: Callable[[Path, CertificateAuthority], None],
    sentence: str,
    state: Path,
    authority: CertificateAuthority,
    now: datetime,
) -> None:
    """An unusable CA is never replaced silently.

    The message names the file, and for most faults the next step.
    """
    damage(state / "ca", authority)
    with pytest.raises(StateError) as refused:
        own_authority(state, DOMAIN, now)
    assert str(refused.value) == sentence.format(
        ca=state / "ca", rest=f"the roots must be in {state}/ca/roots.pem"
    )


def test_expired_or_foreign_root_and_early_clock_are_refused(
    authority: CertificateAuthority, state: Path, now: datetime
) -> None:
    """The message names the expiry, the clock or the trust domain."""
    path, end = state / "ca" / "ca.pem", authority.not_after
    own_authority(state, DOMAIN, end)
    with pytest.raises(StateError, match=f"^CA certificate {path} expired at 2041-05-05 07:08:09"):
        own_authority(state, DOMAIN, end + timedelta(seconds=1))
    with pytest.raises(StateError, match=r"is not valid before 2031-05-06 07:07:09.*; set the clock$"):
        own_authority(state, DOMAIN, now - timedelta(seconds=61))
    with pytest.raises(
        StateError,
        match=r"is for spiffe://mesh.example, not for spiffe://other.example, the trust domain of this mesh$",
    ):
        own_authority(state, TrustDomain("other.example"), now)


def test_state_directory_below_a_file_is_refused_with_its_path(tmp_path: Path, now: datetime) -> None:
    """The directory cannot be created there."""
    (tmp_path / "file").touch()
    with pytest.raises(
        StateError, match=f"^directory {tmp_path}/file/state cannot be made: Not a directory$"
    ):
        own_authority(tmp_path / "file" / "state", DOMAIN, now)


@pytest.fixture
def unprivileged(now: datetime) -> Iterator[Path]:
    """Return a state directory with a CA that belongs to another user than the test's."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)
    own_authority(base / "state", DOMAIN, now)
    (base / "state").chmod(0o755)
    os.seteuid(65534)
    try:
        yield base / "state"
    finally:
        os.seteuid(0)
        shutil.rmtree(base)


def test_missing_permissions_are_reported(unprivileged: Path, now: datetime) -> None:
    """Examples are a state directory of another user, and a CA key that only this user may read."""
    with pytest.raises(StateError, match=f"^directory {unprivileged} is not writable: Permission denied$"):
        own_authority(unprivileged, DOMAIN, now)
    with pytest.raises(StateError, match=f"^directory {unprivileged}/new cannot be made: Permission denied$"):
        own_authority(unprivileged / "new", DOMAIN, now)
    os.seteuid(0)
    (unprivileged / ".ca.lock").chmod(0o666)
    (unprivileged / "ca").chmod(0o755)
    (unprivileged / "ca" / "ca.pem").chmod(0o644)
    os.seteuid(65534)
    with pytest.raises(StateError, match=f"^{unprivileged}/ca/ca.key cannot be read: Permission denied$"):
        own_authority(unprivileged, DOMAIN, now)


def test_certificate_never_outlives_the_root(authority: CertificateAuthority) -> None:
    """The validity is cut at the end of the root, and an expired root signs no certificate."""
    issuer: Issuer = authority
    end = authority.not_after
    names = Names("a.b.c")
    pair = issue_pair(issuer, Usage.PROXY, names, timedelta(days=365), end - timedelta(days=1))
    assert pair.leaf.not_after == end
    with pytest.raises(IssuerError, match=r"^the CA expired at 2041-05-05 07:08:09"):
        issue_pair(issuer, Usage.PROXY, names, timedelta(days=365), end)


def test_request_without_proof_of_its_key_is_refused(authority: CertificateAuthority, now: datetime) -> None:
    """PKCS#10 with a wrong signature is refused, and so are bytes that are no PKCS#10."""
    key = ec.generate_private_key(ec.SECP256R1())
    csr = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    der = bytearray(csr.public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1
    forged = x509.load_der_x509_csr(bytes(der)).public_bytes(serialization.Encoding.PEM)
    request = CertificateRequest(
        Usage.PROXY,
        Names("a.b.c"),
        now,
        now + timedelta(days=1),
        SignedRequest(csr.public_bytes(serialization.Encoding.PEM)),
    )
    assert b"BEGIN CERTIFICATE" in authority.issue(request, now)
    with pytest.raises(RequestError, match="the signing request is not signed with its own key"):
        authority.issue(replace(request, possession=SignedRequest(forged)), now)
    with pytest.raises(RequestError, match=r"^the signing request is not PKCS#10 in PEM$"):
        authority.issue(replace(request, possession=SignedRequest(b"garbage")), now)


def test_chain_is_verified_only_by_its_own_root(
    authority: CertificateAuthority, tmp_path: Path, now: datetime
) -> None:
    """Signatures decide. With two trusted roots, as during a rotation, either may have signed."""
    other = own_authority(tmp_path / "other", DOMAIN, now)
    chain = issue_pair(authority, Usage.PROXY, Names("a.b.c"), timedelta(days=1), now).chain_pem
    assert is_signed_by_bundle(chain, authority.trust_bundle())
    assert is_signed_by_bundle(chain, other.trust_bundle() + authority.trust_bundle())
    assert not is_signed_by_bundle(chain, other.trust_bundle())


def test_repr_of_a_root_contains_no_key(now: datetime) -> None:
    """A repr may end up in logs."""
    assert "key" not in repr(root.new_root(DOMAIN, now)).lower()


def test_constant_parts_of_certificates_are_computed_once(
    state: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These are the fingerprint, which each call of a sidecar needs, and two extensions."""
    made = list[str]()

    def counted(of: object, name: str) -> None:
        inner = getattr(of, name)

        def counting(*given: object, **named: object) -> object:
            made.append(name)
            return inner(*given, **named)

        monkeypatch.setattr(of, name, counting)

    counted(root, "fingerprint_of")
    counted(authorities, "key_usage")
    counted(authorities, "_authority_key_identifier")
    signer = own_authority(state, DOMAIN, now)
    made.clear()
    for usage in Usage:
        issue_pair(signer, usage, Names("a.b.c"), timedelta(days=1), now)
        assert signer.fingerprint
    assert made == []
