"""The credential files of a proxy as values, and their use in TLS contexts of this program.

`meshwright.agent.certificates` checks their content, in a subprocess. The running agent imports only this
module, because the other one is large.
"""

import hashlib
import ssl
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from certs.keys.material import PeerCertificate, PrivateKey
from certs.state.privacy import exposure_of
from meshwright.agent.errors import AgentError
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain, is_dns_subdomain
from meshwright.sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE, TRUST_DOMAIN_FILE
from meshwright.tls.contents import TlsContents, TlsFiles, UnusableTlsError


class CredentialsError(AgentError):
    """The files are missing or do not fit together; the message is one sentence without secrets."""


@dataclass(frozen=True, slots=True)
class CredentialFacts:
    """The facts in credential files that fit together: proxy name, trust domain, and certificate."""

    name: ProxyName
    trust_domain: TrustDomain
    certificate: PeerCertificate


@dataclass(frozen=True, slots=True)
class Files:
    """The unchecked content of `proxy.pem`, `proxy.key` and `ca.pem`.

    `trust_domain` is the mesh's, if given; with None only the CA certificates may name the trust domain.
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
        """Read the files; raise CredentialsError if that is impossible.

        Unless the files are `shared`, users other than `user` (None: the current one) must not be able to
        read the key or to replace a file. Without a `trust_domain` the file beside them is read.
        """
        chain, key, authority = (directory / name for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE))
        if not shared:
            _require_private(directory, chain, key, authority, user)
        private = PrivateKey(required(key))
        domain = trust_domain or domain_beside(directory)
        return cls(directory, required(chain), private, required(authority), domain)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A proxy's certificate with its key and CA certificates, from files that fit together."""

    shows: CredentialFacts
    chain: bytes
    key: PrivateKey
    authority: bytes

    @classmethod
    def from_files(cls, files: Files, shows: CredentialFacts) -> "Credentials":
        """Combine the content of the files with the facts that the check has found in them."""
        return cls(shows, files.chain, files.key, files.authority)

    @property
    def name(self) -> ProxyName:
        """Return the name of the proxy."""
        return self.shows.name

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the mesh's trust domain."""
        return self.shows.trust_domain

    @property
    def serial(self) -> str:
        """Return the serial number of the certificate."""
        return self.shows.certificate.serial

    @property
    def digest(self) -> str:
        """Return a digest of the certificate chain, the private key and the CA certificates."""
        return _digest(self.chain, self.key.reveal(), self.authority)


def digest(directory: Path) -> str:
    """Return a digest of the three files, whatever they contain; a missing file counts as empty."""
    return _digest(*(_content(directory / name) for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE)))


def domain_beside(directory: Path) -> TrustDomain | None:
    """Return the trust domain in the file beside `ca.pem`; None without the file. Raises CredentialsError."""
    path = directory / TRUST_DOMAIN_FILE
    if not path.exists():
        return None
    text = required(path).decode("ascii", "replace").strip()
    if not is_dns_subdomain(text):
        # The content is not quoted, because it may be a secret that was written to the wrong file.
        raise CredentialsError(
            f"{path} must contain only the trust domain of the mesh, for example cluster.local"
        )
    return TrustDomain(text)


def written_beside(directory: Path) -> bytes:
    """Return the unchecked content of the trust domain file beside `ca.pem`; empty without the file."""
    return _content(directory / TRUST_DOMAIN_FILE)


def required(path: Path) -> bytes:
    """Return the content of a credential file; raise CredentialsError if the file is unreadable."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"cannot read {path}: {error.strerror}") from error


def _require_private(directory: Path, chain: Path, key: Path, authority: Path, user: int | None) -> None:
    """Raise CredentialsError if other users can read the key or write any of the credential files."""
    domain = directory / TRUST_DOMAIN_FILE
    paths = (directory, chain, authority, *((domain,) if domain.exists() else ()))
    public = (exposure_of(path, user, public=True) for path in paths)
    if result := next(filter(None, (exposure_of(key, user), *public)), ""):
        raise CredentialsError(f"{result}, or use --shared-credentials if other users may have access")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _digest(*contents: bytes) -> str:
    inner = b"".join(hashlib.sha256(content).digest() for content in contents)
    return hashlib.sha256(inner).hexdigest()


def tls_contents(directory: Path, roots: bytes | None = None) -> TlsContents:
    """Return certificate and key of a directory, with these roots, or with those of the directory.

    Raises CredentialsError for files that cannot be used, for example while they are being replaced.
    """
    files = TlsFiles(directory / AUTHORITY_FILE, directory / CHAIN_FILE, directory / KEY_FILE)
    try:
        contents = TlsContents.read(files if roots is None else replace(files, ca=None))
        return contents if roots is None else replace(contents, ca=roots, files=files)
    except UnusableTlsError as error:
        raise CredentialsError(str(error)) from None


def show_own(context: ssl.SSLContext, directory: Path) -> None:
    """Load the certificate of a directory into a context; raise OSError if that is impossible.

    An encrypted key is refused, because OpenSSL would prompt for its pass phrase on a terminal and wait.
    """
    key = directory / KEY_FILE

    def refused() -> NoReturn:
        raise ssl.SSLError(1, f"{key} is encrypted; it must be PEM without a passphrase")

    context.load_cert_chain(directory / CHAIN_FILE, key, password=refused)
