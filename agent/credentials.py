"""The files with which a proxy dials in: read, judged, and what their certificate says."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.errors import AgentError
from certs.errors import PeerRefused
from certs.leaf import stands_below
from certs.material import PrivateKey
from certs.pair import matched_pair
from certs.peer import PeerCertificate, read_peer
from certs.privacy import exposure_of
from mesh.identity import ProxyName, ProxyNameError
from mesh.names import TrustDomain
from sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE

_SPIFFE: Final = "spiffe://"


class CredentialsError(AgentError):
    """The files are not there, or do not fit together; the message is one sentence without secrets."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A proxy's certificate with its key, and what it trusts. What `read` returns fits together."""

    name: ProxyName
    trust_domain: TrustDomain
    serial: str
    chain: bytes
    key: PrivateKey
    authority: bytes

    @property
    def digest(self) -> str:
        """Return a name for exactly these bytes."""
        return _digest(self.chain, self.key.reveal(), self.authority)


def digest(directory: Path) -> str:
    """Return a digest of the three files as they are, whatever they are; a missing one counts as such."""
    return _digest(*(_content(directory / name) for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE)))


def read(directory: Path, *, shared: bool = False, user: int | None = None) -> Credentials:
    """Read `proxy.pem`, `proxy.key` and `ca.pem`; raise CredentialsError where they cannot be used.

    So it is where others than `user` (None: than we) can get at the key, or put other files in their place,
    unless they are `shared`.
    """
    chain, key, authority = (directory / name for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE))
    if not shared:
        _require_private(directory, chain, key, authority, user)
    private = PrivateKey(_required(key))
    chain_pem, authority_pem = _required(chain), _required(authority)
    try:
        pair = matched_pair(chain_pem, private)
    except ValueError as error:
        raise CredentialsError(f"{chain} and {key} are no pair: {error}") from error
    try:
        trusted = stands_below(chain_pem, authority_pem)
    except ValueError as error:
        raise CredentialsError(f"{authority} is no certificate in PEM") from error
    if not trusted:
        raise CredentialsError(f"{chain} was not issued by an authority in {authority}")
    return Credentials(
        proxy_name(chain), trust_domain(authority), pair.leaf.serial, chain_pem, private, authority_pem
    )


def _require_private(directory: Path, chain: Path, key: Path, authority: Path, user: int | None) -> None:
    """Raise CredentialsError where others can read the key, or write anything."""
    public = (exposure_of(path, user, public=True) for path in (directory, chain, authority))
    if found := next(filter(None, (exposure_of(key, user), *public)), ""):
        raise CredentialsError(f"{found}, or say --shared-credentials if that is meant")


def proxy_name(chain: Path) -> ProxyName:
    """Return whose certificate this is: its common name."""
    try:
        return ProxyName.parse(certificate(chain).common_name)
    except ProxyNameError as error:
        raise CredentialsError(f"{chain} is not a proxy's certificate: {error}") from error


def trust_domain(authority: Path) -> TrustDomain:
    """Return the one trust domain that an authority's certificate names."""
    uris = certificate(authority).uri_sans
    found = [uri.removeprefix(_SPIFFE) for uri in uris if uri.startswith(_SPIFFE)]
    if len(found) != 1:
        raise CredentialsError(f"{authority} does not name one trust domain (a URI {_SPIFFE}<trust domain>)")
    return TrustDomain(found[0])


def certificate(path: Path) -> PeerCertificate:
    """Read the first certificate of a file; raise CredentialsError."""
    try:
        return read_peer(_required(path))
    except PeerRefused as error:
        raise CredentialsError(f"{path} is no certificate in PEM") from error


def _required(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"cannot read {path}: {error.strerror}") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _digest(*contents: bytes) -> str:
    inner = b"".join(hashlib.sha256(content).digest() for content in contents)
    return hashlib.sha256(inner).hexdigest()
