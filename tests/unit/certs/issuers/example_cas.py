"""Test CAs as other tools create them: roots, intermediates and invalid ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from certs.keys.profile import key_usage


@dataclass(frozen=True)
class Ca:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

    @property
    def pem(self) -> bytes:
        """Return the certificate in PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """Return the key in PEM."""
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(encoding, form, serialization.NoEncryption())

    def put(self, folder: Path, *roots: "Ca", between: bytes = b"") -> None:
        """Write the CA as a mounted Secret."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tls.crt").write_bytes(self.pem + between)
        (folder / "tls.key").write_bytes(self.key_pem)
        (folder / "tls.key").chmod(0o600)
        if roots:
            (folder / "ca.crt").write_bytes(b"".join(root.pem for root in roots))


def ca(
    name: str,
    now: datetime,
    above: Ca | None = None,
    *,
    path_length: int | None = None,
    is_ca: bool = True,
    days: int = 365,
    lasting: timedelta = timedelta(0),
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None,
    usages: Sequence[x509.ObjectIdentifier] = (),
    domains: Sequence[str] = (),
    more: Sequence[tuple[x509.ExtensionType, bool]] = (),
) -> Ca:
    """Create a CA, a root or below another CA; `domains` are trust domains, `more` has criticality flags."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(own)
        .issuer_name(own if above is None else above.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=days) + lasting)
        .add_extension(x509.BasicConstraints(is_ca, path_length if is_ca else None), critical=True)
        .add_extension(key_usage(authority=is_ca), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if domains:
        named = [x509.UniformResourceIdentifier(f"spiffe://{domain}") for domain in domains]
        builder = builder.add_extension(x509.SubjectAlternativeName(named), critical=False)
    for extension, critical in more:
        builder = builder.add_extension(extension, critical)
    if above is not None:
        upper = x509.AuthorityKeyIdentifier.from_issuer_public_key(above.key.public_key())
        builder = builder.add_extension(upper, critical=False)
    return Ca(builder.sign(key if above is None else above.key, hashes.SHA256()), key)
