"""Certificates of a cluster: a CA, and keys for servers and clients, valid for one day."""

import base64
import ipaddress
import json
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK: Final = "127.0.0.1"
_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_LIFE: Final = timedelta(days=1)


class Keys:
    """CA of a test cluster, with a folder: `ca.crt`, and `NAME.crt` and `NAME.key` for each certificate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _name("parts-ca")
        builder = self._builder(self._subject, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._write("ca.crt", self._sign(builder))

    def issue(self, name: str, common_name: str, organization: str = "", *addresses: str) -> None:
        """Write a key and a certificate for a client, and for a server on loopback and on `addresses`."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        result = [ipaddress.ip_address(item) for item in (LOOPBACK, *addresses)]
        alternatives = [*map(x509.DNSName, _NAMES), *map(x509.IPAddress, result)]
        builder = self._builder(_name(common_name, organization), key.public_key())
        builder = builder.add_extension(usage, critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        self._write(f"{name}.crt", self._sign(builder))
        self._write(f"{name}.key", _private(key))

    def signing(self, name: str) -> None:
        """Write a private key for signing tokens, and the public key as `NAME.pub`."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._write(f"{name}.key", _private(key))
        self._write(f"{name}.pub", public)

    def token(self, signer: str, claims: Mapping[str, object]) -> str:
        """Return a token (JWT, ES256) with these claims, signed by the key `signer`."""
        key = serialization.load_pem_private_key((self.folder / f"{signer}.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101 - `signing` made it
        text = ".".join(_encoded(json.dumps(item).encode()) for item in ({"alg": "ES256"}, claims))
        r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def kubeconfig(self, path: Path, name: str, server: str) -> None:
        """Write a kubeconfig for the client `name`, with its issued certificate."""
        certificate, key = (self._data(f"{name}.{end}") for end in ("crt", "key"))
        user = {"client-certificate-data": certificate, "client-key-data": key}
        self.kubeconfig_of(path, name, server, user)

    def kubeconfig_of(self, path: Path, name: str, server: str, user: Mapping[str, object]) -> None:
        """Write a kubeconfig; `user` is the user's entry, for example `{"token": ...}`."""
        cluster = {"server": server, "certificate-authority-data": self._data("ca.crt")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "parts", "cluster": cluster}],
            "users": [{"name": name, "user": dict(user)}],
            "contexts": [{"name": "parts", "context": {"cluster": "parts", "user": name}}],
            "current-context": "parts",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1), "utf-8")

    def _data(self, name: str) -> str:
        return base64.b64encode((self.folder / name).read_bytes()).decode()

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


def client(folder: Path, name: str) -> ssl.SSLContext:
    """Return TLS settings with the CA in a folder and its client certificate `name`."""
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(str(folder / f"{name}.crt"), str(folder / f"{name}.key"))
    return context


def _name(common_name: str, organization: str = "") -> x509.Name:
    words = [(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([x509.NameAttribute(*item) for item in (*words, (NameOID.COMMON_NAME, common_name))])


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
