"""A certificate authority for the clients of a gateway, and certificates that it signs."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.tools.tls_secrets import EdgePair

_DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class ClientAuthority:
    """A certificate authority; `pem` is its certificate."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey = field(repr=False)
    pem: str

    @classmethod
    def new(cls, name: str) -> Self:
        """Make an authority with a certificate of its own."""
        key, subject = ec.generate_private_key(ec.SECP256R1()), _name(name)
        builder = _builder(subject, subject, key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        certificate = builder.sign(key, hashes.SHA256())
        return cls(subject, key, certificate.public_bytes(serialization.Encoding.PEM).decode())

    def client(self, name: str, *others: x509.GeneralName) -> EdgePair:
        """Return a client certificate with a common name, and other names."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = _builder(_name(name), self.name, key).add_extension(usage, critical=False)
        if others:
            builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return EdgePair(certificate.public_bytes(serialization.Encoding.PEM), private)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
    )
