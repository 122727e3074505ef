"""Tests of signing requests of strangers: only a strong key with its signature is used."""

import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificateIssuerPrivateKeyTypes,
    CertificatePublicKeyTypes,
)
from cryptography.x509.oid import NameOID

from certs.errors import RequestError
from certs.issuers.authority import CertificateAuthority
from certs.keys.leaf import read_leaf
from certs.keys.signing_request import MOST_BYTES, judged
from certs.ledger.contract import Ledger
from certs.ledger.entry import LedgerState
from certs.proxy import sign_proxy
from meshwright.mesh.identity import ProxyName

NAME = ProxyName.parse("5d1a4f0e-1f0c-4f5e-9c1d-0a5b6c7d8e9f.shop.market")
P256 = ec.generate_private_key(ec.SECP256R1())
SHA256 = hashes.SHA256()
_LONG_KEY = rsa.RSAPublicNumbers(65537, 2**8191 + 1).public_key()
_DEAR_KEY = rsa.RSAPublicNumbers(2**33 + 1, 2**2047 + 1).public_key()
_SHA1 = "300906072a8648ce3d0401"


def csr(
    key: CertificateIssuerPrivateKeyTypes = P256,
    digest: hashes.SHA256 | hashes.SHA384 | None = SHA256,
    *extensions: x509.ExtensionType,
) -> bytes:
    """Return a request in DER, as a machine would create it."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "admin.everything.kube-system")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    return builder.sign(key, digest).public_bytes(serialization.Encoding.DER)


def _rsa(bits: int, exponent: int = 65537) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(exponent, bits)


def test_strong_keys_are_accepted() -> None:
    """These are P-256, P-384 and RSA from 2048 bits. The digest depends only on the key."""
    keys: tuple[CertificateIssuerPrivateKeyTypes, ...] = (
        P256,
        ec.generate_private_key(ec.SECP384R1()),
        _rsa(2048),
    )
    digests = {judged(csr(key, digest)).key_digest for key in keys for digest in (SHA256, hashes.SHA384())}
    assert len(digests) == len(keys)


WEAK: dict[str, tuple[Callable[[], bytes], str]] = {
    "RSA 1024": (lambda: csr(_rsa(1024)), "RSA of 1024 bits"),
    "RSA with a small exponent": (lambda: csr(_rsa(2048, 3)), "with the exponent 3: it must be ECDSA"),
    "RSA with a long exponent": (
        lambda: _unproven(_public(_DEAR_KEY)),
        "the exponent 8589934593: it must",
    ),
    "RSA 8192": (lambda: _unproven(_public(_LONG_KEY)), "RSA of 8192 bits"),
    "P-192": (lambda: csr(ec.generate_private_key(ec.SECP192R1())), "ECDSA on secp192r1: it must be"),
    "P-521": (lambda: csr(ec.generate_private_key(ec.SECP521R1())), "ECDSA on secp521r1: it must be"),
    "secp256k1": (lambda: csr(ec.generate_private_key(ec.SECP256K1())), "ECDSA on secp256k1: it must be"),
    "Ed25519": (lambda: csr(ed25519.Ed25519PrivateKey.generate(), None), "of the kind Ed25519"),
    "SHA-1": (
        lambda: _unproven(_public(P256.public_key()), _SHA1),
        "signed with sha1: the hash must be SHA-256",
    ),
    "nothing": (lambda: b"", "not PKCS#10"),
    "no PKCS#10": (lambda: b"-----BEGIN CERTIFICATE REQUEST-----", "not PKCS#10"),
    "bytes after it": (lambda: csr() + b"\0", "not PKCS#10"),
    "half of it": (lambda: csr()[:100], "not PKCS#10"),
    "huge": (
        lambda: b"\x30" * (MOST_BYTES + 1),
        f"has {MOST_BYTES + 1} bytes; at most {MOST_BYTES} are allowed",
    ),
    "a broken signature": (lambda: _flipped(csr()), "the signing request is not signed with its own key"),
    "somebody else's key": (lambda: _swapped(P256), "the signing request is not signed with its own key"),
}


def _flipped(request: bytes) -> bytes:
    """Return a request with another last bit, which belongs to the signature."""
    return request[:-1] + bytes([request[-1] ^ 1])


def _der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    length = (
        bytes([size]) if size < 128 else bytes([0x81, size]) if size < 256 else b"\x82" + size.to_bytes(2)
    )
    return bytes([tag]) + length + content


def _unproven(key: bytes, algorithm: str = "300a06082a8648ce3d040302") -> bytes:
    """Return a request for a public key (SubjectPublicKeyInfo) without its private key."""
    what = _der(0x30, bytes.fromhex("020100"), _der(0x30), key, bytes.fromhex("a000"))
    return _der(0x30, what, bytes.fromhex(algorithm), _der(0x03, b"\0", b"x"))


def _public(key: CertificatePublicKeyTypes) -> bytes:
    encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(encoding, form)


def _swapped(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a request whose public key was replaced by one that did not sign it."""
    other = ec.generate_private_key(ec.SECP256R1())
    return csr().replace(_public(key.public_key()), _public(other.public_key()))


@pytest.mark.parametrize("which", WEAK)
def test_weak_or_invalid_request_is_refused_with_the_requirement(which: str) -> None:
    """Each fault has its own message."""
    made, words = WEAK[which]
    with pytest.raises(RequestError, match=words):
        judged(made())


def test_names_and_extensions_of_a_request_are_ignored(
    authority: CertificateAuthority, ledger: Ledger, now: datetime, tmp_path: Path
) -> None:
    """The certificate has the given name and only clientAuth, whatever the request contains."""
    asked = csr(
        P256,
        SHA256,
        x509.SubjectAlternativeName([x509.UniformResourceIdentifier("spiffe://mesh.example/ns/a/sa/admin")]),
        x509.BasicConstraints(ca=True, path_length=None),
        x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]),
    )
    signed = sign_proxy(authority, ledger, NAME, judged(asked), timedelta(days=90), now)
    leaf = read_leaf(signed.chain_pem)
    assert (leaf.names.common_name, leaf.names.alternatives) == (str(NAME), ((), (), ()))
    assert (leaf.client_auth, leaf.server_auth) == (True, False)
    certificate = x509.load_pem_x509_certificate(signed.chain_pem)
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert certificate.public_key() == P256.public_key()
    _verify(tmp_path, authority.trust_bundle(), signed.chain_pem)


def _verify(folder: Path, bundle: bytes, chain: bytes) -> None:
    """Verify the chain with OpenSSL."""
    (folder / "ca.pem").write_bytes(bundle)
    (folder / "proxy.pem").write_bytes(chain)
    verified = [
        "openssl",
        "verify",
        "-no_check_time",
        "-purpose",
        "sslclient",
        "-CAfile",
        "ca.pem",
        "proxy.pem",
    ]
    subprocess.run(verified, cwd=folder, check=True, capture_output=True)


def test_signed_certificate_is_recorded_in_the_ledger_before_it_is_returned(
    authority: CertificateAuthority, ledger: Ledger, now: datetime
) -> None:
    """The entry is the same as for a certificate that was issued with its key."""
    signed = sign_proxy(authority, ledger, NAME, judged(csr()), timedelta(days=90), now)
    entry = ledger.entry(signed.serial)
    assert entry is not None
    assert (entry.common_name, entry.state) == (str(NAME), LedgerState.ISSUED)
    assert (signed.not_before, signed.not_after) == (now - timedelta(seconds=60), now + timedelta(days=90))
