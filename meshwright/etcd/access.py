"""Access to an etcd: endpoints, TLS files, and a file with user and password.

Plain text is permitted on loopback only, because records and passwords would cross the network. With TLS a
client certificate or a user is required, because otherwise everybody who reaches the store can write.
"""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from meshwright.etcd.errors import AccessError
from meshwright.tls.contents import NO_FILES, TlsContents, TlsFiles, UnusableTlsError

PORT: Final = 2379
"""Port of an endpoint without one."""

_EXAMPLE: Final = "for example https://10.0.0.1:2379"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of one member, for example `https://10.0.0.1:2379`."""

    host: str
    port: int
    tls: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the endpoint of a URL; raise AccessError for another text, and for open plain text."""
        if "@" in text:  # first, because the other errors repeat the text
            raise AccessError(
                f"an endpoint of etcd has a user: put user and password into a file, and use {_EXAMPLE}"
            )
        try:
            url = urlsplit(text)
            host, port = url.hostname or "", url.port or PORT
        except ValueError:
            raise AccessError(f"endpoint {text!r} of etcd is no URL: use {_EXAMPLE}") from None
        if url.scheme not in ("http", "https") or not host or url.path.strip("/") or url.query:
            raise AccessError(f"endpoint {text!r} of etcd: use {_EXAMPLE}")
        if url.scheme == "http" and not _is_loopback(host):
            raise AccessError(
                f"endpoint {text!r} of etcd is plain text, which is permitted on loopback only: use https"
            )
        return cls(host, port, url.scheme == "https")

    @property
    def target(self) -> str:
        """Return the address for gRPC."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.target}"


@dataclass(frozen=True, slots=True)
class User:
    """A user of etcd's own authentication. The password is not in the repr."""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Access:
    """Endpoints and credentials of an etcd. `user_file` has one line, `USER:PASSWORD`.

    Raises AccessError without an endpoint, and for missing or incomplete credentials.
    """

    endpoints: tuple[Endpoint, ...]
    tls: TlsFiles = NO_FILES
    user_file: Path | None = None

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise AccessError(f"etcd has no endpoint: name at least one, {_EXAMPLE}")
        if (self.tls.certificate is None) != (self.tls.key is None):
            raise AccessError("a client certificate of etcd needs both files: certificate and key")
        if any(item.tls for item in self.endpoints) and not (self.tls.certificate or self.user_file):
            raise AccessError("etcd is used with a client certificate, or with a file of user and password")

    def user(self) -> User | None:
        """Return user and password from their file, or None without a file; raise AccessError."""
        if self.user_file is None:
            return None
        name, colon, password = _read(self.user_file).decode("utf-8", "replace").strip().partition(":")
        if not name or not colon or not password or "\n" in password:
            raise AccessError(f"{self.user_file}: expected one line, USER:PASSWORD")
        return User(name, password)

    def tls_contents(self, known: TlsContents | None = None) -> TlsContents:
        """Return the contents of the files; raise AccessError if one is unreadable or they do not fit.

        Contents that equal the `known` ones are not checked again.
        """
        try:
            return TlsContents.read(self.tls, known)
        except UnusableTlsError as error:
            raise AccessError(str(error)) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AccessError(f"{path} cannot be read: {error.strerror}") from None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
