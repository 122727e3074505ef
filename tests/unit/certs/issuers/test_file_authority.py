"""Tests of a CA in files that another program renews: verification, replacement, and invalid files."""

import base64
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.contract import Names, Usage
from certs.errors import StateError
from certs.issuers import file_authority as watched
from certs.issuers.authority import CertificateAuthority
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.issuers.root import Root, read_root
from certs.keys.leaf import is_signed_by_bundle
from certs.keys.pair import Pair, issue_pair
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority
from tests.unit.certs.issuers.example_cas import Ca, ca

DOMAIN = TrustDomain("mesh.example")
NAMES = Names("service-1", uris=("spiffe://mesh.example/ns/shop/sa/store",))
DAY = timedelta(days=1)
CLIENT, SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH


def _issuer(folder: Path, now: datetime) -> WatchedIssuer:
    return WatchedIssuer(WatchedFiles.within(folder), DOMAIN, now)


def _issued(issuer: WatchedIssuer | CertificateAuthority, now: datetime) -> Pair:
    return issue_pair(issuer, Usage.SERVICE, NAMES, DAY, now)


def test_intermediate_ca_signs_and_its_root_is_trusted(tmp_path: Path, now: datetime) -> None:
    """The chain is part of each certificate, and OpenSSL verifies it."""
    root = ca("root", now)
    upper = ca("upper", now, root, path_length=1)
    lower = ca("lower", now, upper, path_length=0, days=20)
    lower.put(tmp_path / "ca", root, between=upper.pem)
    issuer = _issuer(tmp_path / "ca", now)
    pair = _issued(issuer, now)
    assert issuer.trust_bundle() == root.pem
    assert pair.chain_pem.endswith(lower.pem + upper.pem)
    assert pair.chain_pem.count(b"BEGIN CERTIFICATE") == 3
    late = issue_pair(issuer, Usage.SERVICE, NAMES, 40 * DAY, now)
    assert late.leaf.not_after == lower.certificate.not_valid_after_utc
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl")
    (tmp_path / "leaf.pem").write_bytes(pair.chain_pem)
    at = ["-attime", str(int(now.timestamp()))]
    leaf, roots = str(tmp_path / "leaf.pem"), str(tmp_path / "ca" / "ca.crt")
    files = ["-CAfile", roots, "-untrusted", leaf, leaf]
    done = subprocess.run([openssl, "verify", *at, *files], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done


def test_built_in_ca_may_be_an_intermediate_with_its_root(tmp_path: Path, now: datetime) -> None:
    """Without its root it is refused, because no peer could verify its certificates."""
    root = ca("root", now)
    lower = ca("lower", now, root)
    folder = tmp_path / "ca"
    folder.mkdir()
    (folder / "ca.pem").write_bytes(lower.pem)
    (folder / "ca.key").write_bytes(lower.key_pem)
    with pytest.raises(StateError, match=r"ca.pem \(expected root in .*/ca/roots.pem\) cannot be used"):
        own_authority(tmp_path, DOMAIN, now)
    (folder / "roots.pem").write_bytes(root.pem)
    authority = own_authority(tmp_path, DOMAIN, now)
    chain = _issued(authority, now).chain_pem
    assert chain.count(b"BEGIN CERTIFICATE") == 2
    assert is_signed_by_bundle(chain, authority.trust_bundle())
    assert authority.signer_of(chain) == authority.fingerprint


def test_key_on_a_curve_that_envoy_does_not_support_is_refused(tmp_path: Path, now: datetime) -> None:
    """OpenSSL would accept it, but sidecars would not. This is true for the CA and for the CAs above it."""
    other = ca("root", now, key=ec.generate_private_key(ec.BrainpoolP256R1()))
    other.put(tmp_path / "itself")
    ca("lower", now, other).put(tmp_path / "below", other)
    for item in ("itself", "below"):
        with pytest.raises(
            StateError,
            match="'CN=root' has an ECDSA key on the curve brainpoolP256r1, which Envoy does not support",
        ):
            _issuer(tmp_path / item, now)
    for number, curve in enumerate((ec.SECP384R1(), ec.SECP521R1())):
        made = ca("root", now, key=ec.generate_private_key(curve))
        made.put(tmp_path / str(number))
        assert is_signed_by_bundle(_issued(_issuer(tmp_path / str(number), now), now).chain_pem, made.pem)


def test_new_ca_is_used_only_when_certificate_and_key_match(tmp_path: Path, now: datetime) -> None:
    """Between the writes of certificate and key, the previous CA continues."""
    folder = tmp_path / "ca"
    first, second = ca("first", now), ca("second", now)
    first.put(folder)
    issuer = _issuer(folder, now)
    issuer.look(now)
    assert issuer.trust_bundle() == first.pem
    (folder / "tls.crt").write_bytes(second.pem)
    with pytest.raises(StateError, match=r"CA key .*tls.key does not match CA certificate .*tls.crt"):
        issuer.look(now)
    assert is_signed_by_bundle(_issued(issuer, now).chain_pem, first.pem)
    (folder / "tls.key").write_bytes(second.key_pem)
    issuer.look(now)
    assert issuer.trust_bundle() == second.pem
    assert is_signed_by_bundle(_issued(issuer, now).chain_pem, second.pem)


def test_verified_ca_is_not_verified_again_while_it_is_valid(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a key blocks all threads.

    The end of the validity and a clock that was set back are still noticed.
    """
    ca("own", now, days=5).put(tmp_path)
    issuer, opened = _issuer(tmp_path, now), list[datetime]()

    def read(*told: Any, **more: Any) -> Root:
        opened.append(told[-1])
        return read_root(*told, **more)

    monkeypatch.setattr(watched, "read_root", read)
    issuer.look(now)
    issuer.look(now + 4 * DAY)
    assert not opened
    for at, sentence in ((now + 6 * DAY, "expired at"), (now - 2 * DAY, "is not valid before")):
        with pytest.raises(StateError, match=sentence):
            issuer.look(at)
    assert len(opened) == 2


def test_files_of_a_kubernetes_volume_are_read_through_one_link(tmp_path: Path, now: datetime) -> None:
    """All files change with `..data`, so that no file of one Secret is combined with one of another."""
    volume = tmp_path / "volume"
    for number in (1, 2):
        ca(f"ca {number}", now).put(volume / f"..{number}")
    (volume / "..data").symlink_to("..1")
    for name in ("tls.crt", "tls.key"):
        (volume / name).symlink_to(Path("..data") / name)
    issuer = _issuer(volume, now)
    before = issuer.trust_bundle()
    (volume / "..tmp").symlink_to("..2")
    (volume / "..tmp").rename(volume / "..data")
    issuer.look(now)
    assert issuer.trust_bundle() != before


def _other_key(folder: Path, now: datetime) -> None:
    (folder / "tls.key").write_bytes(ca("x", now).key_pem)


def _below_path_length(folder: Path, now: datetime) -> None:
    root = ca("root", now)
    upper = ca("upper", now, root, path_length=0)
    ca("lower", now, upper).put(folder, root, between=upper.pem)


def _for_servers_alone(folder: Path, now: datetime) -> None:
    root = ca("root", now)
    ca("lower", now, root, usages=[SERVER]).put(folder, root)


def test_openssl_also_refuses_client_certificates_of_a_ca_for_servers_only(
    tmp_path: Path, now: datetime
) -> None:
    """The usage of the CA limits its certificates. With both usages, the CA is accepted."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl")
    root, leaf = ca("root", now), tmp_path / "leaf.pem"
    (tmp_path / "root.pem").write_bytes(root.pem)
    for usages, is_good in (([SERVER], False), ([SERVER, CLIENT], True)):
        lower = ca("lower", now, root, usages=usages)
        (tmp_path / "lower.pem").write_bytes(lower.pem)
        leaf.write_bytes(ca("leaf", now, lower, is_ca=False, days=1, usages=[SERVER, CLIENT]).pem)
        files = ["-CAfile", str(tmp_path / "root.pem"), "-untrusted", str(tmp_path / "lower.pem"), str(leaf)]
        messages = ["-purpose", "sslclient", "-attime", str(int(now.timestamp())), *files]
        done = subprocess.run([openssl, "verify", *messages], capture_output=True, check=False, timeout=60)
        assert (done.returncode == 0) is is_good, done
        if is_good:
            lower.put(tmp_path / "ca", root)
            assert _issuer(tmp_path / "ca", now).trust_bundle() == root.pem


def _expired_above(folder: Path, now: datetime) -> None:
    root = ca("root", now - 10 * DAY, days=5)
    ca("lower", now, root).put(folder, root)


def _strange(folder: Path, change: tuple[str, str]) -> None:
    """Replace bytes of the certificate, so that the library cannot interpret it."""
    der = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes()).public_bytes(Encoding.DER)
    before, after = map(bytes.fromhex, change)
    assert der.count(before) == 1
    lines = b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n"
    (folder / "tls.crt").write_bytes(lines % base64.encodebytes(der.replace(before, after)))


VERSION = "a003020102", "a003020107"
CURVE = "06082a8648ce3d030107", "06082a8648ce3d030163"
EXTENSION = "0603551d0e", "0603551d0f"
"""The subject key identifier's name becomes that of key usage, which is there then twice."""


def _weak(folder: Path, now: datetime) -> None:
    ca("weak", now, key=rsa.generate_private_key(65537, 1024)).put(folder)  # noqa: S505 - that is the point


BAD: list[tuple[Callable[[Path, datetime], object], str]] = [
    (
        lambda folder, now: ca("leaf", now, is_ca=False).put(folder),
        "tls.crt is not a CA certificate: it may not sign other certificates",
    ),
    (
        lambda folder, now: ca("old", now - 9 * DAY, days=5).put(folder),
        "tls.crt expired at .*; restore the right files$",
    ),
    (lambda folder, now: ca("new", now + 9 * DAY).put(folder), "tls.crt is not valid before"),
    (
        lambda folder, now: ca("lower", now, ca("up", now)).put(folder, ca("x", now)),
        ("but the given certificates have not signed it; add the missing intermediate or root"),
    ),
    (
        lambda folder, now: ca("lower", now, ca("up", now)).put(folder),
        "expected root in .*so it is not a root; give the root too$",
    ),
    (
        lambda folder, now: ca("own", now).put(folder, ca("x", now)),
        "its chain ends at .*CN=own.*, which is not one of the given roots$",
    ),
    (_below_path_length, r"CN=upper.* allows 0 CAs below it \(its path length\), but there are 1"),
    (
        _for_servers_alone,
        "CN=lower.* does not allow certificates below it for TLS clients and servers: its extended key usage",
    ),
    (_expired_above, "CN=root.* expired at"),
    (_weak, "tls.key is an RSA key of 1024 bits; it must have at least 2048 bits"),
    (_other_key, "tls.key does not match"),
    (lambda folder, _: (folder / "tls.crt").write_bytes(b"junk"), "tls.crt is not a certificate in PEM"),
    (
        lambda folder, _: (folder / "tls.key").write_bytes(b"planted-junk"),
        "tls.key is not a private key in PEM",
    ),
    (lambda folder, _: (folder / "tls.key").unlink(), "tls.key is missing; restore the right files"),
    (lambda folder, _: (folder / "ca.crt").write_bytes(b""), "ca.crt is not a certificate in PEM"),
    (lambda folder, _: _strange(folder, VERSION), "tls.crt is not a certificate in PEM"),
    (lambda folder, _: _strange(folder, CURVE), "tls.crt has a key or extensions that cannot be read"),
    (lambda folder, _: _strange(folder, EXTENSION), "tls.crt has a key or extensions that cannot be read"),
]


@pytest.mark.parametrize(("spoil", "sentence"), BAD)
def test_invalid_ca_is_reported_and_the_previous_one_continues(
    tmp_path: Path, now: datetime, spoil: Callable[[Path, datetime], object], sentence: str
) -> None:
    """At a start it is an error. The message contains no content of a key file."""
    folder = tmp_path / "ca"
    good: Ca = ca("good", now)
    good.put(folder)
    issuer = _issuer(folder, now)
    spoil(folder, now)
    with pytest.raises(StateError, match=sentence) as exception_info:
        issuer.look(now)
    assert "planted" not in str(exception_info.value)
    assert issuer.trust_bundle() == good.pem
    assert is_signed_by_bundle(_issued(issuer, now).chain_pem, good.pem)
    with pytest.raises(StateError, match=sentence):
        _issuer(folder, now)


def test_configured_file_of_roots_must_exist(tmp_path: Path, now: datetime) -> None:
    """A missing file of roots is an error, also if certificate and key are valid."""
    root = ca("root", now)
    ca("lower", now, root).put(tmp_path, root)
    watched_files = WatchedFiles(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    assert WatchedIssuer(watched_files, DOMAIN, now).trust_bundle() == root.pem
    (tmp_path / "ca.crt").unlink()
    with pytest.raises(StateError, match=re.escape(f"{tmp_path}/ca.crt is missing")):
        WatchedIssuer(watched_files, DOMAIN, now)
