"""Whether the files with which a proxy dials in fit together, and what their certificates say.

For programs that end: the agent at rest does not import it, and has `agent.reader` asked (`agent.reading`).
"""

from pathlib import Path
from typing import Final

from agent.credentials import Credentials, CredentialsError, Files, Shows, required
from certs.errors import PeerRefused
from certs.leaf import stands_below
from certs.material import PeerCertificate
from certs.pair import matched_pair
from certs.peer import read_peer
from mesh.identity import ProxyName, ProxyNameError
from mesh.names import TrustDomain
from sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE

_SPIFFE: Final = "spiffe://"


def read(directory: Path, *, shared: bool = False, user: int | None = None) -> Credentials:
    """Read `proxy.pem`, `proxy.key` and `ca.pem`; raise CredentialsError where they cannot be used.

    As `Files.taken`, and where they do not fit together.
    """
    files = Files.taken(directory, shared=shared, user=user)
    return Credentials.of(files, judged(files))


def judged(files: Files) -> Shows:
    """Return what files say that fit together; raise CredentialsError, which names them."""
    chain, key, authority = (files.directory / name for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE))
    try:
        matched_pair(files.chain, files.key)
    except ValueError as error:
        raise CredentialsError(f"{chain} and {key} are no pair: {error}") from error
    try:
        trusted = stands_below(files.chain, files.authority)
    except ValueError as error:
        raise CredentialsError(f"{authority} is no certificate in PEM") from error
    if not trusted:
        raise CredentialsError(f"{chain} was not issued by an authority in {authority}")
    shown = _certificate(chain, files.chain)
    return Shows(_name(chain, shown), _domain(authority, _certificate(authority, files.authority)), shown)


def proxy_name(chain: Path) -> ProxyName:
    """Return whose certificate this is: its common name."""
    return _name(chain, certificate(chain))


def trust_domain(authority: Path) -> TrustDomain:
    """Return the one trust domain that an authority's certificate names."""
    return _domain(authority, certificate(authority))


def domain_of(roots: bytes) -> TrustDomain:
    """Return the one trust domain that roots (PEM) name, which are not in a file yet."""
    return _domain(Path("the root of the control plane"), _certificate(Path("the root"), roots))


def certificate(path: Path) -> PeerCertificate:
    """Read the first certificate of a file; raise CredentialsError."""
    return _certificate(path, required(path))


def _certificate(path: Path, pem: bytes) -> PeerCertificate:
    try:
        return read_peer(pem)
    except PeerRefused as error:
        raise CredentialsError(f"{path} is no certificate in PEM") from error


def _name(chain: Path, shown: PeerCertificate) -> ProxyName:
    try:
        return ProxyName.parse(shown.common_name)
    except ProxyNameError as error:
        raise CredentialsError(f"{chain} is not a proxy's certificate: {error}") from error


def _domain(authority: Path, shown: PeerCertificate) -> TrustDomain:
    found = [uri.removeprefix(_SPIFFE) for uri in shown.uri_sans if uri.startswith(_SPIFFE)]
    if len(found) != 1:
        raise CredentialsError(f"{authority} does not name one trust domain (a URI {_SPIFFE}<trust domain>)")
    return TrustDomain(found[0])
