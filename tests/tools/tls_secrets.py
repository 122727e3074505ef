"""Certificates for the edge, signed by themselves, and their Secrets and ConfigMaps as manifests."""

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID

_DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class EdgePair:
    """A certificate that clients trust as a root, and its key, both PEM."""

    chain: bytes
    key: bytes = field(repr=False)

    def manifest(self, name: str, namespace: str = "default") -> str:
        """Return the Secret of the pair as YAML."""
        return secret(name, {"tls.crt": self.chain, "tls.key": self.key}, namespace)


def self_signed(
    *names: str,
    key: CertificateIssuerPrivateKeyTypes | None = None,
    valid: tuple[datetime, datetime] | None = None,
) -> EdgePair:
    """Make a certificate for DNS names, with a new ECDSA key, and one day before and after now by default."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    begin, end = valid or (now - _DAY, now + _DAY)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return EdgePair(_pem(certificate).encode(), _private(key))


class Authority:
    """A CA with an ECDSA key, valid one day before and after now; `pem` is its certificate."""

    def __init__(self, name: str = "ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        limits = x509.BasicConstraints(ca=True, path_length=None)
        self.pem = _pem(self._signed(self._name, self._key.public_key(), limits))

    def issue(self, *names: str, uris: tuple[str, ...] = ()) -> EdgePair:
        """Return a certificate for DNS names and URIs, with a new key."""
        key = ec.generate_private_key(ec.SECP256R1())
        general = [*map(x509.DNSName, names), *map(x509.UniformResourceIdentifier, uris)]
        extension = x509.SubjectAlternativeName(general)
        chain = _pem(self._signed(x509.Name([]), key.public_key(), extension)).encode()
        return EdgePair(chain, _private(key))

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(extension, critical=True)
            .sign(self._key, hashes.SHA256())
        )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _private(key: CertificateIssuerPrivateKeyTypes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def secret(
    name: str, data: dict[str, bytes], namespace: str = "default", kind: str = "kubernetes.io/tls"
) -> str:
    """Return a Secret as YAML."""
    entries = "".join(f"  {entry}: {base64.b64encode(value).decode()}\n" for entry, value in data.items())
    return (
        f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"type: {kind}\ndata:\n{entries}"
    )


def config_map(name: str, data: dict[str, str], namespace: str = "default") -> str:
    """Return a ConfigMap as YAML."""
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"data: {json.dumps(data)}\n"
    )
