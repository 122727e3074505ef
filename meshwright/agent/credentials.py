"""The files with which a proxy connects, as values, and shown by our own TLS.

`meshwright.agent.certificates` judges their content. The agent at rest
imports this module, so nothing here reads certificates.
"""

import hashlib
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from certs.keys.material import PeerCertificate, PrivateKey
from certs.state.privacy import exposure_of
from meshwright.agent.errors import AgentError
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain, is_dns_subdomain
from meshwright.sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE, TRUST_DOMAIN_FILE


class CredentialsError(AgentError):
    """The files are not there, or do not fit together; the message is one sentence without secrets."""


@dataclass(frozen=True, slots=True)
class CredentialFacts:
    """What files say that fit together: whose they are, in which trust domain, and the rest of the leaf."""

    name: ProxyName
    trust_domain: TrustDomain
    certificate: PeerCertificate


@dataclass(frozen=True, slots=True)
class Files:
    """The content of `proxy.pem`, `proxy.key` and `ca.pem`, of which nothing is known yet.

    `trust_domain` is the mesh's as it was told, None where only the roots can say it.
    """

    directory: Path
    chain: bytes
    key: PrivateKey
    authority: bytes
    trust_domain: TrustDomain | None = None

    @classmethod
    def taken(
        cls,
        directory: Path,
        *,
        shared: bool = False,
        user: int | None = None,
        trust_domain: TrustDomain | None = None,
    ) -> "Files":
        """Read them; raise CredentialsError where that cannot be.

        So it is where others than `user` (None: than we) can get at the key, or put other files in their
        place, unless they are `shared`. Without a `trust_domain` it is what stands beside them.
        """
        chain, key, authority = (directory / name for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE))
        if not shared:
            _require_private(directory, chain, key, authority, user)
        private = PrivateKey(required(key))
        told = trust_domain or domain_beside(directory)
        return cls(directory, required(chain), private, required(authority), told)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A proxy's certificate with its key, and what it trusts: files that fit together."""

    shows: CredentialFacts
    chain: bytes
    key: PrivateKey
    authority: bytes

    @classmethod
    def of(cls, files: Files, shows: CredentialFacts) -> "Credentials":
        """Put together what was read and what was found in it."""
        return cls(shows, files.chain, files.key, files.authority)

    @property
    def name(self) -> ProxyName:
        """Return whose they are."""
        return self.shows.name

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the mesh's trust domain."""
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


def domain_beside(directory: Path) -> TrustDomain | None:
    """Return the trust domain that is written beside roots, None where none is; raise CredentialsError."""
    path = directory / TRUST_DOMAIN_FILE
    if not path.exists():
        return None
    text = required(path).decode("ascii", "replace").strip()
    if not is_dns_subdomain(text):
        # What the file holds is not quoted: it may be a secret that was written to the wrong file.
        raise CredentialsError(
            f"{path} must hold the mesh's trust domain, such as cluster.local, and no more"
        )
    return TrustDomain(text)


def written_beside(directory: Path) -> bytes:
    """Return what is written as the trust domain, whatever it is."""
    return _content(directory / TRUST_DOMAIN_FILE)


def required(path: Path) -> bytes:
    """Return what is in a file; raise CredentialsError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"cannot read {path}: {error.strerror}") from error


def _require_private(directory: Path, chain: Path, key: Path, authority: Path, user: int | None) -> None:
    """Raise CredentialsError where others can read the key, or write anything."""
    domain = directory / TRUST_DOMAIN_FILE
    paths = (directory, chain, authority, *((domain,) if domain.exists() else ()))
    public = (exposure_of(path, user, public=True) for path in paths)
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


def show_own(context: ssl.SSLContext, directory: Path) -> None:
    """Have a context show the certificate of a directory; raise OSError where that cannot be.

    OpenSSL asks for the pass phrase of a key that is encrypted, at whatever terminal there is, and waits.
    """
    key = directory / KEY_FILE

    def refused() -> NoReturn:
        raise ssl.SSLError(1, f"{key} is encrypted: it must be PEM without a pass phrase")

    context.load_cert_chain(directory / CHAIN_FILE, key, password=refused)
