"""A CA that can sign: made here, or parsed from its certificate, key and roots. A pure module."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from certs.errors import StateError
from certs.issuers.chain import IssuerChain, above
from certs.keys.leaf import fingerprint_of, read_leaf, trust_domains
from certs.keys.profile import key_usage, subject
from certs.keys.serial import new_serial
from certs.lifetimes import BACKDATED
from meshwright.mesh.names import TrustDomain
from meshwright.tls.pem import as_pem, certificates_in

VALIDITY: Final = timedelta(days=3652)
"""Validity of a CA made here: 10 years."""

SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
"""Type of a CA's key. CAs made here use ECDSA P-256; one put into the directory may use RSA."""

_LEAST_RSA: Final = 2048


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


@dataclass(frozen=True, slots=True)
class CaNames:
    """Names of a CA's certificate, key and roots in error messages, for example paths of files.

    `mend` is the remedy, for example "restore the right files".
    """

    certificate: str
    key: str
    roots: str
    mend: str


def fingerprint_of_ca(name: str, content: bytes, mend: str) -> str:
    """Return the fingerprint of a CA certificate, valid or not. Raises StateError, which has the `name`."""
    return fingerprint_of(_certificates(name, content, mend)[0])


def read_root(
    names: CaNames,
    certificate_pem: bytes,
    key_pem: bytes,
    roots_pem: bytes | None,
    trust_domain: TrustDomain,
    now: datetime,
    *,
    signs_proxies: bool = True,
) -> Root:
    """Parse a CA; raise StateError, which names the faulty part, unless the CA can sign now."""
    certificates = _certificates(names.certificate, certificate_pem, names.mend)
    if roots_pem is None and len(certificates) != 1:
        raise StateError(
            f"CA certificate {names.certificate} has {len(certificates)} certificates; it must "
            f"have exactly one, or the roots must be in {names.roots}"
        )
    certificate = certificates[0]
    key = _read_key(names.key, key_pem, names.mend)
    if key.public_key() != certificate.public_key():
        raise StateError(
            f"CA key {names.key} does not match CA certificate {names.certificate}; {names.mend}"
        )
    _check_trust_domain(names.certificate, certificate, trust_domain)
    _check_validity(names, certificate, now)
    roots = [] if roots_pem is None else _certificates(names.roots, roots_pem, names.mend)
    _check_roots_domain(names.roots, roots, trust_domain)
    try:
        way = above(certificate, certificates[1:], roots, now, signs_proxies=signs_proxies)
    except ValueError as error:
        where = names.certificate if roots else f"{names.certificate} (expected root in {names.roots})"
        raise StateError(f"CA certificate {where} cannot be used: {error}") from error
    return Root(certificate, key, way)


def _certificates(path: str, content: bytes, mend: str) -> list[x509.Certificate]:
    try:
        certificates = certificates_in(content)
    except ValueError as error:
        raise StateError(f"CA certificate {path} {error}; {mend}") from None
    _check_is_ca(path, certificates[0])
    return certificates


def _check_is_ca(path: str, certificate: x509.Certificate) -> None:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        raise StateError(
            f"{path} is not a CA certificate: the basic constraints or the key usage are missing"
        ) from None
    if not (constraints.ca and usage.key_cert_sign):
        raise StateError(f"{path} is not a CA certificate: it may not sign other certificates")


def _read_key(path: str, content: bytes, mend: str) -> SigningKey:
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


def _check_trust_domain(path: str, certificate: x509.Certificate, trust_domain: TrustDomain) -> None:
    """Refuse a CA of another trust domain; an external CA may be without a trust domain."""
    uris = read_leaf(certificate.public_bytes(serialization.Encoding.PEM)).names.uris
    if uris and uris != (f"spiffe://{trust_domain}",):
        raise StateError(
            f"CA certificate {path} is for {', '.join(uris)}, not for "
            f"spiffe://{trust_domain}, the trust domain of this mesh"
        )


def _check_roots_domain(path: str, roots: list[x509.Certificate], trust_domain: TrustDomain) -> None:
    """Refuse roots of another trust domain: agents would look for a control plane of this domain."""
    named = trust_domains(as_pem(roots)) if roots else ()
    if others := [f"spiffe://{item}" for item in named if item != trust_domain]:
        raise StateError(
            f"the roots in {path} are for {', '.join(others)}, not for "
            f"spiffe://{trust_domain}; a root must have the trust domain of this mesh, or omit it"
        )


def _check_validity(names: CaNames, certificate: x509.Certificate, now: datetime) -> None:
    path = names.certificate
    if now > certificate.not_valid_after_utc:
        raise StateError(f"CA certificate {path} expired at {certificate.not_valid_after_utc}; {names.mend}")
    if now < certificate.not_valid_before_utc:
        raise StateError(
            f"CA certificate {path} is not valid before {certificate.not_valid_before_utc}, "
            f"and the clock of this machine shows {now}; set the clock"
        )
