"""Key and certificate of a CA: in the state directory, made once and then loaded, or in other files."""

import os
import shutil
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from certs.errors import StateError
from certs.issuers.chain import IssuerChain, above
from certs.keys.leaf import fingerprint_of, read_leaf, trust_domains
from certs.keys.pem import as_pem, certificates_in
from certs.keys.profile import key_usage, subject
from certs.keys.serial import new_serial
from certs.lifetimes import BACKDATED
from certs.state import files
from certs.state.sealing import PLAIN, Seal, UnopenedError
from meshwright.mesh.names import TrustDomain

VALIDITY: Final = timedelta(days=3652)
"""Validity of a CA made here: 10 years."""

SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
"""Type of a CA's key. CAs made here use ECDSA P-256; one put into the directory may use RSA."""

_LEAST_RSA: Final = 2048
_AWAY: Final = (
    "restore the right files, or move the directory away so that the server creates a "
    "new CA (then all proxy certificates must be issued again)"
)


@dataclass(frozen=True, slots=True)
class Root:
    """A CA certificate with its private key, and the chain of the CAs above."""

    certificate: x509.Certificate
    key: SigningKey = field(repr=False)
    above: IssuerChain

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the public key in X.509 form, which a renewed certificate keeps."""
        return fingerprint_of(self.certificate)


def fingerprint_in(directory: Path) -> str:
    """Return the fingerprint of the CA in a directory, valid or not; empty without a CA."""
    content = files.read(directory / "ca.pem")
    return "" if content is None else fingerprint_of(_certificates(directory / "ca.pem", content, _AWAY)[0])


def is_there(state: Path) -> bool:
    """Return whether a state directory has a CA, even partly; raise StateError for a broken link."""
    directory = state / "ca"
    if directory.is_symlink() and not directory.exists():
        raise StateError(f"{directory} is a symbolic link to a missing directory")
    return any(_exists(directory / name) for name in ("ca.pem", "ca.key"))


def open_root(state: Path, trust_domain: TrustDomain, now: datetime, seal: Seal = PLAIN) -> Root:
    """Load `<state>/ca/ca.pem` and `ca.key`, and make them first if both are missing.

    Safe against a concurrent process. Both files appear together by the rename of a directory, so a crash
    never leaves only one of them. Raises StateError.
    """
    files.private_directory(state)
    directory = state / "ca"
    with files.locked(state / ".ca.lock"):
        if not is_there(state):
            write_root(directory, state / ".ca.new", new_root(trust_domain, now), seal)
    return load_root(directory, trust_domain, now, seal)


def _exists(path: Path) -> bool:
    try:
        return path.is_symlink() or path.exists()
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}") from error


def new_root(trust_domain: TrustDomain, now: datetime) -> Root:
    """Make a root with a new key (ECDSA P-256), without storing the root."""
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # Distinct names, because chains are built by name, and during a change there are two roots.
    name = subject(f"Meshwright CA {identifier.digest.hex()[:16]}")
    second = now.replace(microsecond=0)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(new_serial())
        .not_valid_before(second - BACKDATED)
        .not_valid_after(second + VALIDITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(authority=True), critical=True)
        .add_extension(identifier, critical=False)
        # SPIFFE X509-SVID, section 2: a signing certificate names its trust domain, without a path.
        .add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(f"spiffe://{trust_domain}")]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return Root(certificate, key, above(certificate, (), (), second))


def write_root(directory: Path, staging: Path, root: Root, seal: Seal) -> None:
    """Write a CA's files to a directory atomically, by the rename of `staging`. Raises StateError.

    `seal` encrypts the key if configured. An intermediate is stored with the CAs above, and their roots.
    """
    key = root.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        if staging.exists():
            shutil.rmtree(staging)  # left by a process that crashed here; the lock excludes a running one
        files.private_directory(staging)
        files.write_private(staging / "ca.key", seal.closed(key))
        own = root.certificate.public_bytes(serialization.Encoding.PEM)
        files.write_private(staging / "ca.pem", root.above.chain_pem or own)
        if root.above.chain_pem:
            files.write_private(staging / "roots.pem", root.above.roots.pem)
        os.rename(staging, directory)  # noqa: PTH104 - this one replaces an empty directory, as we need
        files.sync_directory(directory.parent)
    except OSError as error:
        raise StateError(f"cannot create the CA in {directory}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class CaFiles:
    """The files of a CA: certificate (followed by intermediates), key, and the roots of an intermediate.

    `mend` is the remedy for error messages.
    """

    certificate: Path
    key: Path
    roots: Path
    mend: str


def load_root(directory: Path, trust_domain: TrustDomain, now: datetime, seal: Seal = PLAIN) -> Root:
    """Load `ca.pem` and `ca.key` of a directory, and `roots.pem` for an intermediate.

    Raises StateError unless the files are a CA able to sign now.
    """
    ca_files = CaFiles(directory / "ca.pem", directory / "ca.key", directory / "roots.pem", _AWAY)
    certificate_pem = _content(ca_files.certificate, ca_files.key, ca_files)
    try:
        key_pem = seal.opened(_content(ca_files.key, ca_files.certificate, ca_files))
    except UnopenedError as error:
        raise StateError(f"CA key {ca_files.key} cannot be used: {error}") from None
    except ValueError as error:
        raise StateError(f"CA key {ca_files.key} cannot be used: {error}; {_AWAY}") from None
    return read_root(ca_files, certificate_pem, key_pem, files.read(ca_files.roots), trust_domain, now)


def read_root(
    ca_files: CaFiles,
    certificate_pem: bytes,
    key_pem: bytes,
    roots_pem: bytes | None,
    trust_domain: TrustDomain,
    now: datetime,
    *,
    signs_proxies: bool = True,
) -> Root:
    """Parse a CA from the content of the files; raise StateError, which names the faulty file."""
    certificates = _certificates(ca_files.certificate, certificate_pem, ca_files.mend)
    if roots_pem is None and len(certificates) != 1:
        raise StateError(
            f"CA certificate {ca_files.certificate} has {len(certificates)} certificates; it must "
            f"have exactly one, or the roots must be in {ca_files.roots}"
        )
    certificate = certificates[0]
    key = _read_key(ca_files.key, key_pem, ca_files.mend)
    if key.public_key() != certificate.public_key():
        raise StateError(
            f"CA key {ca_files.key} does not match CA certificate {ca_files.certificate}; {ca_files.mend}"
        )
    _check_trust_domain(ca_files.certificate, certificate, trust_domain)
    _check_validity(ca_files, certificate, now)
    roots = [] if roots_pem is None else _certificates(ca_files.roots, roots_pem, ca_files.mend)
    _check_roots_domain(ca_files.roots, roots, trust_domain)
    try:
        way = above(certificate, certificates[1:], roots, now, signs_proxies=signs_proxies)
    except ValueError as error:
        where = (
            ca_files.certificate if roots else f"{ca_files.certificate} (expected root in {ca_files.roots})"
        )
        raise StateError(f"CA certificate {where} cannot be used: {error}") from error
    return Root(certificate, key, way)


def _content(path: Path, other: Path, ca_files: CaFiles) -> bytes:
    content = files.read(path)
    if content is None:
        raise StateError(f"{path} is missing, but {other} exists; {ca_files.mend}")
    return content


def _certificates(path: Path, content: bytes, mend: str) -> list[x509.Certificate]:
    try:
        certificates = certificates_in(content)
    except ValueError as error:
        raise StateError(f"CA certificate {path} {error}; {mend}") from None
    _check_is_ca(path, certificates[0])
    return certificates


def _check_is_ca(path: Path, certificate: x509.Certificate) -> None:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        raise StateError(
            f"{path} is not a CA certificate: the basic constraints or the key usage are missing"
        ) from None
    if not (constraints.ca and usage.key_cert_sign):
        raise StateError(f"{path} is not a CA certificate: it may not sign other certificates")


def _read_key(path: Path, content: bytes, mend: str) -> SigningKey:
    # `from None`, because a parser's message could quote the content of the key file.
    try:
        key = serialization.load_pem_private_key(content, password=None)
    except TypeError:
        raise StateError(f"CA key {path} is encrypted; it must be PEM without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise StateError(f"CA key {path} is not a private key in PEM; {mend}") from None
    # OpenSSL refuses shorter RSA keys at its default security level.
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size < _LEAST_RSA:
        raise StateError(
            f"CA key {path} is an RSA key of {key.key_size} bits; it must have at least {_LEAST_RSA} bits"
        )
    if not isinstance(key, SigningKey):
        raise StateError(f"CA key {path} is neither an ECDSA nor an RSA key; {mend}")
    return key


def _check_trust_domain(path: Path, certificate: x509.Certificate, trust_domain: TrustDomain) -> None:
    """Refuse a CA of another trust domain; an external CA may be without a trust domain."""
    uris = read_leaf(certificate.public_bytes(serialization.Encoding.PEM)).names.uris
    if uris and uris != (f"spiffe://{trust_domain}",):
        raise StateError(
            f"CA certificate {path} is for {', '.join(uris)}, not for "
            f"spiffe://{trust_domain}, the trust domain of this mesh"
        )


def _check_roots_domain(path: Path, roots: list[x509.Certificate], trust_domain: TrustDomain) -> None:
    """Refuse roots of another trust domain: agents would look for a control plane of this domain."""
    named = trust_domains(as_pem(roots)) if roots else ()
    if others := [f"spiffe://{item}" for item in named if item != trust_domain]:
        raise StateError(
            f"the roots in {path} are for {', '.join(others)}, not for "
            f"spiffe://{trust_domain}; a root must have the trust domain of this mesh, or omit it"
        )


def _check_validity(ca_files: CaFiles, certificate: x509.Certificate, now: datetime) -> None:
    path = ca_files.certificate
    if now > certificate.not_valid_after_utc:
        raise StateError(
            f"CA certificate {path} expired at {certificate.not_valid_after_utc}; {ca_files.mend}"
        )
    if now < certificate.not_valid_before_utc:
        raise StateError(
            f"CA certificate {path} is not valid before {certificate.not_valid_before_utc}, "
            f"and the clock of this machine shows {now}; set the clock"
        )
