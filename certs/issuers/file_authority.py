"""A CA in files renewed by another program."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Self

import structlog

from certs.contract import CertificateRequest
from certs.errors import StateError
from certs.issuers.authority import CertificateAuthority
from certs.issuers.root import CaNames, read_root
from certs.state import files
from meshwright.mesh.names import TrustDomain

_MEND: Final = "restore the right files"
_DATA: Final = "..data"

_log = structlog.get_logger("certs.issuers.watched")


@dataclass(frozen=True, slots=True)
class CaFiles:
    """The files of a CA: certificate (followed by intermediates), key, and the roots of an intermediate."""

    certificate: Path
    key: Path
    roots: Path

    @property
    def names(self) -> CaNames:
        """Return the paths for error messages."""
        return CaNames(str(self.certificate), str(self.key), str(self.roots), _MEND)


@dataclass(frozen=True, slots=True)
class WatchedFiles:
    """The files of a CA: certificate, key, and the roots of an intermediate; `directory` may be None.

    `roots_setting` is the setting to name in an error about missing roots. A Kubernetes volume replaces all
    files by one link, so the link is resolved once for all files.
    """

    certificate: Path
    key: Path
    roots: Path | None = None
    directory: Path | None = None
    roots_setting: str = "ca_roots"

    @classmethod
    def within(cls, directory: Path, roots_setting: str = "ca_roots") -> Self:
        """Return the files of a directory with a mounted Secret of type `kubernetes.io/tls`."""
        return cls(Path("tls.crt"), Path("tls.key"), Path("ca.crt"), directory, roots_setting)

    @property
    def place(self) -> Path:
        """Return the path of the CA's files for messages."""
        return self.directory or self.certificate

    def now(self) -> CaFiles:
        """Return the current paths of the CA's files."""
        base = Path()
        if self.directory is not None:
            data = self.directory / _DATA
            base = data.resolve() if data.is_symlink() else self.directory
        roots = base / self.roots if self.roots is not None else Path(self.roots_setting)
        return CaFiles(base / self.certificate, base / self.key, roots)


@dataclass(frozen=True, slots=True)
class _Content:
    certificate: bytes
    key: bytes = field(repr=False)
    roots: bytes | None


class WatchedIssuer:
    """An Authority that replaces its CA as a whole when the files have another valid one.

    `signs` describes the certificates for the log, for example `service certificates`. With `signs_proxies`
    the CA must meet more requirements (`chain.above`).
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
        """Load the CA; raise StateError if the CA cannot sign now."""
        self._signs = signs
        self._signs_proxies = signs_proxies
        self._watched = watched
        self._trust_domain = trust_domain
        ca_files = self._watched.now()
        self._content = self._read_content(ca_files)
        self._signer, self._verified = self._opened(ca_files, self._content, now), now

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain of the certified identities."""
        return self._trust_domain

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign a request; see CertificateAuthority."""
        return self._signer.issue(request, now)

    def trust_bundle(self) -> bytes:
        """Return the roots as PEM."""
        return self._signer.trust_bundle()

    def signing_bundle(self) -> bytes:
        """Return the trust bundle."""
        return self._signer.signing_bundle()

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the signing key."""
        return self._signer.fingerprint

    @property
    def other(self) -> str:
        """Return "": the files contain one CA at a time, so there is no second root."""
        return ""

    @property
    def leaving(self) -> str:
        """Return the fingerprint of the signing key, because there is one CA at a time."""
        return self.fingerprint

    @property
    def not_after(self) -> datetime:
        """Return the end of the signing CA's validity."""
        return self._signer.not_after

    def trusts(self, signer: str) -> bool:
        """Return True for every signer, because TLS accepts only certificates below the current CA."""
        return self._signer.trusts(signer)

    def signer_of(self, chain_pem: bytes) -> str:
        """Return the fingerprint of the signing CA if the certificate is below a root of this CA, else ""."""
        return self._signer.signer_of(chain_pem)

    def look(self, now: datetime) -> None:
        """Load changed files; raise StateError for a faulty CA, and keep the present one.

        Files replaced one by one may not match for a moment; the next call reads them again.
        """
        ca_files = self._watched.now()
        content = self._read_content(ca_files)
        # Loading an RSA key verifies it and blocks all threads for about 0.25 s: skip unchanged files.
        if content == self._content and self._verified <= now <= self.not_after:
            return
        signer = self._opened(ca_files, content, now)
        if content != self._content:
            self._content, self._signer = content, signer
            _log.info(f"CA of {self._signs} replaced", fingerprint=signer.fingerprint)
        self._verified = now

    def _read_content(self, ca_files: CaFiles) -> _Content:
        return _Content(_required(ca_files.certificate), _required(ca_files.key), self._roots(ca_files.roots))

    def _opened(self, ca_files: CaFiles, content: _Content, now: datetime) -> CertificateAuthority:
        given = content.certificate, content.key, content.roots
        names, domain = ca_files.names, self._trust_domain
        root = read_root(names, *given, domain, now, signs_proxies=self._signs_proxies)
        return CertificateAuthority(root, self._trust_domain)

    def _roots(self, path: Path) -> bytes | None:
        """Return the roots, or None without configured roots.

        A mounted Secret of a self-signed CA may lack roots.
        """
        if self._watched.roots is None:
            return None
        return _required(path) if self._watched.directory is None else files.read(path)


def _required(path: Path) -> bytes:
    content = files.read(path)
    if content is None:
        raise StateError(f"{path} is missing; {_MEND}")
    return content
