"""Usable PEM contents of a TLS client: CA certificates, certificate and key."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from meshwright.tls.key_pair import load_key_pair


class UnusableTlsError(ValueError):
    """A file or content for TLS cannot be used; the message names the file, and never quotes it."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of a client. Without `ca` the built-in CA certificates are used."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


NO_FILES: Final = TlsFiles()
"""Names of contents from other places than files."""


@dataclass(frozen=True, slots=True)
class TlsContents:
    """PEM contents of a client, at one moment; None for an unused part.

    `files` are the names in errors. Raises UnusableTlsError if OpenSSL cannot use the contents: they are
    empty, cut or encrypted, or the key belongs to another certificate. A file has such contents for example
    while an operator replaces the file.
    """

    ca: bytes | None = field(repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    files: TlsFiles = field(default=NO_FILES, compare=False)

    def __post_init__(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.ca is not None:
            try:
                # Text between the certificates may have any encoding.
                context.load_verify_locations(cadata=self.ca.decode("ascii", "ignore"))
            except (ssl.SSLError, ValueError):
                named = self.files.ca or "the content with the CA certificates"
                raise UnusableTlsError(f"{named} cannot be used: expected CA certificates in PEM") from None
        if self.certificate is not None or self.key is not None:
            try:
                load_key_pair(context, self.certificate or b"", self.key or b"")
            except (ssl.SSLError, ValueError):
                named = f"{self.files.certificate or 'the certificate'} and {self.files.key or 'its key'}"
                raise UnusableTlsError(
                    f"{named} cannot be used: expected a certificate in PEM and its private key, "
                    "which is not encrypted"
                ) from None

    @classmethod
    def read(cls, files: TlsFiles, known: Self | None = None) -> Self:
        """Return the contents of files; contents that equal the `known` ones are not checked again.

        Raises UnusableTlsError, also for an unreadable file.
        """
        paths = (files.ca, files.certificate, files.key)
        ca, certificate, key = (None if path is None else _read(path) for path in paths)
        if known is not None and (ca, certificate, key) == (known.ca, known.certificate, known.key):
            return known
        return cls(ca, certificate, key, files)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnusableTlsError(f"{path} cannot be read: {error.strerror}") from None
