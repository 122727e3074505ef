"""The files with which a proxy dials in, as values; what is in them is judged in `agent.certificates`.

Imported by the agent at rest, and so without anything that reads certificates.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from agent.errors import AgentError
from certs.material import PeerCertificate, PrivateKey
from certs.privacy import exposure_of
from mesh.identity import ProxyName
from mesh.names import TrustDomain
from sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE


class CredentialsError(AgentError):
    """The files are not there, or do not fit together; the message is one sentence without secrets."""


@dataclass(frozen=True, slots=True)
class Shows:
    """What files say that fit together: whose they are, in which trust domain, and the rest of the leaf."""

    name: ProxyName
    trust_domain: TrustDomain
    certificate: PeerCertificate


@dataclass(frozen=True, slots=True)
class Files:
    """The content of `proxy.pem`, `proxy.key` and `ca.pem`, of which nothing is known yet."""

    directory: Path
    chain: bytes
    key: PrivateKey
    authority: bytes

    @classmethod
    def taken(cls, directory: Path, *, shared: bool = False, user: int | None = None) -> "Files":
        """Read them; raise CredentialsError where that cannot be.

        So it is where others than `user` (None: than we) can get at the key, or put other files in their
        place, unless they are `shared`.
        """
        chain, key, authority = (directory / name for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE))
        if not shared:
            _require_private(directory, chain, key, authority, user)
        private = PrivateKey(required(key))
        return cls(directory, required(chain), private, required(authority))


@dataclass(frozen=True, slots=True)
class Credentials:
    """A proxy's certificate with its key, and what it trusts: files that fit together."""

    shows: Shows
    chain: bytes
    key: PrivateKey
    authority: bytes

    @classmethod
    def of(cls, files: Files, shows: Shows) -> "Credentials":
        """Put together what was read and what was found in it."""
        return cls(shows, files.chain, files.key, files.authority)

    @property
    def name(self) -> ProxyName:
        """Return whose they are."""
        return self.shows.name

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the one trust domain of the authority."""
        return self.shows.trust_domain

    @property
    def serial(self) -> str:
        """Return the certificate's serial."""
        return self.shows.certificate.serial

    @property
    def digest(self) -> str:
        """Return a name for exactly these bytes."""
        return _digest(self.chain, self.key.reveal(), self.authority)


def digest(directory: Path) -> str:
    """Return a digest of the three files as they are, whatever they are; a missing one counts as such."""
    return _digest(*(_content(directory / name) for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE)))


def required(path: Path) -> bytes:
    """Return what is in a file; raise CredentialsError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"cannot read {path}: {error.strerror}") from error


def _require_private(directory: Path, chain: Path, key: Path, authority: Path, user: int | None) -> None:
    """Raise CredentialsError where others can read the key, or write anything."""
    public = (exposure_of(path, user, public=True) for path in (directory, chain, authority))
    if found := next(filter(None, (exposure_of(key, user), *public)), ""):
        raise CredentialsError(f"{found}, or say --shared-credentials if that is meant")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _digest(*contents: bytes) -> str:
    inner = b"".join(hashlib.sha256(content).digest() for content in contents)
    return hashlib.sha256(inner).hexdigest()
