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
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return EdgePair(certificate.public_bytes(serialization.Encoding.PEM), private)


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
