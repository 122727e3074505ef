"""A CA in files that somebody else renews."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import structlog

from certs.contract import CertificateRequest
from certs.errors import StateError
from certs.issuers.authority import CertificateAuthority
from certs.issuers.root import CaFiles, read_root
from certs.state import files
from meshwright.mesh.names import TrustDomain

_MEND: Final = "put the right files there"
_DATA: Final = "..data"

_log = structlog.get_logger("certs.issuers.watched")


@dataclass(frozen=True, slots=True)
class WatchedFiles:
    """A CA's certificate and key, and its roots if it is an intermediate; in a `directory` if there is one.

    `roots_setting` is what tells of roots where none were told of. A volume of Kubernetes exchanges all of
    its files by one link, which is followed once for all of them.
    """

    certificate: Path
    key: Path
    roots: Path | None = None
    directory: Path | None = None
    roots_setting: str = "ca_roots"

    @classmethod
    def within(cls, directory: Path, roots_setting: str = "ca_roots") -> Self:
        """Return those of a directory as a Secret of type `kubernetes.io/tls` is mounted."""
        return cls(Path("tls.crt"), Path("tls.key"), Path("ca.crt"), directory, roots_setting)

    @property
    def place(self) -> Path:
        """Return where people find them."""
        return self.directory or self.certificate

    def now(self) -> CaFiles:
        """Return where they are at this moment."""
        base = Path()
        if self.directory is not None:
            data = self.directory / _DATA
            base = data.resolve() if data.is_symlink() else self.directory
        roots = base / self.roots if self.roots is not None else Path(self.roots_setting)
        return CaFiles(base / self.certificate, base / self.key, roots, _MEND)


@dataclass(frozen=True, slots=True)
class _Content:
    certificate: bytes
    key: bytes = field(repr=False)
    roots: bytes | None


class WatchedIssuer:
    """An Authority whose CA is exchanged as a whole whenever its files hold another that is good.

    `signs` is what it signs, for the log; not every CA can sign what `signs_proxies` (`chain.above`).
    """

    def __init__(
        self,
        watched: WatchedFiles,
        trust_domain: TrustDomain,
        now: datetime,
        signs: str = "service certificates",
        *,
        signs_proxies: bool = False,
    ) -> None:
        """Begin with what the files hold; raise StateError where that is no CA that can sign now."""
        self._signs = signs
        self._signs_proxies = signs_proxies
        self._watched = watched
        self._trust_domain = trust_domain
        told = self._watched.now()
        self._content = self._held(told)
        self._signer, self._verified = self._opened(told, self._content, now), now

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain whose identities it certifies."""
        return self._trust_domain

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign a request; see CertificateAuthority."""
        return self._signer.issue(request, now)

    def trust_bundle(self) -> bytes:
        """Return the roots as PEM."""
        return self._signer.trust_bundle()

    def signing_bundle(self) -> bytes:
        """Return the same."""
        return self._signer.signing_bundle()

    @property
    def fingerprint(self) -> str:
        """Return what tells the key that signs from others'."""
        return self._signer.fingerprint

    @property
    def other(self) -> str:
        """Return nothing: it has one CA at a time."""
        return ""

    @property
    def leaving(self) -> str:
        """Return its own."""
        return self.fingerprint

    @property
    def not_after(self) -> datetime:
        """Return the end of the CA that signs."""
        return self._signer.not_after

    def trusts(self, signer: str) -> bool:
        """Say so of all that TLS has let in."""
        return self._signer.trusts(signer)

    def signer_of(self, chain_pem: bytes) -> str:
        """Return the fingerprint of the CA that signs, if what it stands below has signed this."""
        return self._signer.signer_of(chain_pem)

    def look(self, now: datetime) -> None:
        """Take what the files hold if it is another; raise StateError where it is bad, and go on as before.

        Files that are exchanged one after the other may not fit for a moment: the next look finds them whole.
        """
        told = self._watched.now()
        content = self._held(told)
        # To read an RSA key is to verify it: a quarter of a second in which no other thread goes on.
        if content == self._content and self._verified <= now <= self.not_after:
            return
        signer = self._opened(told, content, now)
        if content != self._content:
            self._content, self._signer = content, signer
            _log.info(f"another CA signs {self._signs}", fingerprint=signer.fingerprint)
        self._verified = now

    def _held(self, told: CaFiles) -> _Content:
        return _Content(_required(told.certificate), _required(told.key), self._roots(told.roots))

    def _opened(self, told: CaFiles, content: _Content, now: datetime) -> CertificateAuthority:
        given = content.certificate, content.key, content.roots
        root = read_root(told, *given, self._trust_domain, now, signs_proxies=self._signs_proxies)
        return CertificateAuthority(root, self._trust_domain)

    def _roots(self, path: Path) -> bytes | None:
        """Return the roots, None where none are told of; a Secret of a CA that signs itself may have none."""
        if self._watched.roots is None:
            return None
        return _required(path) if self._watched.directory is None else files.read(path)


def _required(path: Path) -> bytes:
    content = files.read(path)
    if content is None:
        raise StateError(f"{path} is missing; {_MEND}")
    return content
