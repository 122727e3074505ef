"""TLS contexts for an API server, from files or memory."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from meshwright.kube.errors import ConfigError, Reason
from meshwright.tls.key_pair import load_key_pair

Stamp = tuple[int, int, int]
"""Modification time, size and inode, which change when a file is replaced."""


@dataclass(frozen=True, slots=True)
class Material:
    """The ingredients of a TLS context, as files or contents: CA, certificate and key; empty if absent."""

    ca: Path | bytes = b""
    certificate: Path | bytes = field(default=b"", repr=False)
    key: Path | bytes = field(default=b"", repr=False)
    insecure: bool = False

    def stamp(self) -> tuple[Stamp | None, ...]:
        """Return a value that changes with any of the TLS files; an unreadable file counts as None."""
        return tuple(_stamp(item) for item in (self.ca, self.certificate, self.key) if isinstance(item, Path))


def context(material: Material) -> ssl.SSLContext:
    """Return the TLS context for an API server; raise ConfigError, which names the wrong file."""
    by_system = not material.ca and not material.insecure
    made = ssl.create_default_context() if by_system else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 requires extensions that CAs made by older tools, common in clusters, do not have.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if material.insecure:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    elif material.ca:
        try:
            made.load_verify_locations(cadata=_bytes(material.ca).decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"{_named(material.ca, 'certificate-authority')} must contain certificates in PEM"
            ) from error
    if material.certificate:
        try:
            load_key_pair(made, _bytes(material.certificate), _bytes(material.key))
        except (ssl.SSLError, ValueError) as error:
            pair = ((material.certificate, "client-certificate"), (material.key, "client-key"))
            named = " and ".join(_named(*item) for item in pair)
            wrong = "must be a certificate and its key in PEM, and the key must not have a password"
            raise ConfigError(f"{named} {wrong}", Reason.CREDENTIALS) from error
    return made


def _bytes(source: Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{source} cannot be read: {error.strerror or error}", Reason.CREDENTIALS
        ) from error


def _stamp(file: Path) -> Stamp | None:
    try:
        result = file.stat()
    except OSError:
        return None
    return result.st_mtime_ns, result.st_size, result.st_ino


def _named(source: Path | bytes, field_name: str) -> str:
    return str(source) if isinstance(source, Path) else f"{field_name}-data"
