"""Certificates of a cluster on loopback: one authority, keys for servers and clients, for a day."""

import base64
import ipaddress
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK: Final = "127.0.0.1"
_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LIFE: Final = timedelta(days=1)


class Keys:
    """A folder of `ca.crt`, and `NAME.crt` and `NAME.key` for each who was issued one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name("parts-ca")
        builder = self._builder(self._subject, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._write("ca.crt", self._sign(builder))

    def issue(self, name: str, common_name: str, organization: str = "", *addresses: str) -> None:
        """Write a key and a certificate, good for a server on loopback and for a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        found = [ipaddress.ip_address(each) for each in (LOOPBACK, *addresses)]
        alternatives = [*map(x509.DNSName, _NAMES), *map(x509.IPAddress, found)]
        builder = self._builder(_name(common_name, organization), key.public_key())
        builder = builder.add_extension(usage, critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        self._write(f"{name}.crt", self._sign(builder))
        self._write(f"{name}.key", _private(key))

    def signing(self, name: str) -> None:
        """Write a key that signs tokens, and its public half as `NAME.pub`."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._write(f"{name}.key", _private(key))
        self._write(f"{name}.pub", public)

    def kubeconfig(self, path: Path, name: str, server: str) -> None:
        """Write how that client reaches an API server."""
        authority, certificate, key = (
            base64.b64encode((self.folder / each).read_bytes()).decode()
            for each in ("ca.crt", f"{name}.crt", f"{name}.key")
        )
        cluster = {"server": server, "certificate-authority-data": authority}
        user = {"client-certificate-data": certificate, "client-key-data": key}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "parts", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "parts", "context": {"cluster": "parts", "user": name}}],
            "current-context": "parts",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1), "utf-8")

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._subject).public_key(key)
        return (
            builder.serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + _LIFE)
        )

    def _sign(self, builder: x509.CertificateBuilder) -> bytes:
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)


def _name(common_name: str, organization: str = "") -> x509.Name:
    words = [(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([x509.NameAttribute(*each) for each in (*words, (NameOID.COMMON_NAME, common_name))])


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
