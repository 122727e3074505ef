"""Check that a proxy's credential files fit together, and read their certificates.

Only short-lived programs import this module, because the imports are large. The running agent calls
`meshwright.agent.credential_check_main` in a subprocess (`meshwright.agent.credential_check`).
"""

from pathlib import Path

from certs.errors import PeerRefused
from certs.keys.leaf import is_signed_by_bundle, trust_domains
from certs.keys.material import PeerCertificate
from certs.keys.pair import matched_pair
from certs.peer import read_peer
from meshwright.agent.credentials import (
    CredentialFacts,
    Credentials,
    CredentialsError,
    Files,
    domain_beside,
    required,
)
from meshwright.mesh.identity import ProxyName, ProxyNameError
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE, TRUST_DOMAIN_FILE
from meshwright.tls.pem import PLAIN, is_plain


def read(
    directory: Path, *, shared: bool = False, user: int | None = None, configured: TrustDomain | None = None
) -> Credentials:
    """Read `proxy.pem`, `proxy.key` and `ca.pem`; raise CredentialsError if they cannot be used.

    The errors of `Files.taken` apply too. `configured` is the mesh's trust domain, if given by an option.
    """
    files = Files.taken(directory, shared=shared, user=user, trust_domain=configured)
    return Credentials.from_files(files, judged(files))


def judged(files: Files) -> CredentialFacts:
    """Check that credential files fit together, and return their content.

    Raises CredentialsError, which names the faulty files.
    """
    chain, key, authority = (files.directory / name for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE))
    try:
        matched_pair(files.chain, files.key)
    except ValueError as error:
        raise CredentialsError(f"{chain} and {key} do not belong together: {error}") from error
    try:
        trusted = is_signed_by_bundle(files.chain, files.authority)
    except ValueError as error:
        raise CredentialsError(f"{authority} is not a certificate in PEM") from error
    if not trusted:
        raise CredentialsError(
            f"{chain} was not issued by a CA in {authority}; use the files of the same mesh"
        )
    for path, pem in ((chain, files.chain), (key, files.key.reveal()), (authority, files.authority)):
        if not is_plain(pem):
            raise CredentialsError(f"Envoy cannot read {path}: {PLAIN}")
    shown = _certificate(chain, files.chain)
    return CredentialFacts(
        _name(chain, shown), domain_of(files.authority, files.trust_domain, authority), shown
    )


def proxy_name(chain: Path) -> ProxyName:
    """Return the proxy name in a certificate (the common name), for example `<uuid>.cart.shop`."""
    return _name(chain, certificate(chain))


def trust_domain(directory: Path, configured: TrustDomain | None = None) -> TrustDomain:
    """Return the mesh's trust domain: `configured`, else from the file beside `ca.pem`, else from `ca.pem`.

    Raises CredentialsError.
    """
    path = directory / AUTHORITY_FILE
    return domain_of(required(path), configured or domain_beside(directory), path)


def domain_of(roots: bytes, configured: TrustDomain | None, where: object) -> TrustDomain:
    """Return the mesh's trust domain: `configured`, or the one named by the CA certificates (PEM).

    Raises CredentialsError, whose message names `where`, if both are missing or contradict each other.
    """
    try:
        named = trust_domains(roots)
    except ValueError as error:
        raise CredentialsError(f"{where} is not a certificate in PEM") from error
    says = f"{where} names the trust domain {' and '.join(named)}"
    if configured is not None and set(named) - {configured}:
        raise CredentialsError(
            f"{says}, but the configured trust domain is {configured} (from --trust-domain, "
            f"MESHWRIGHT_TRUST_DOMAIN or the file {TRUST_DOMAIN_FILE}); correct the one "
            "that belongs to another mesh"
        )
    if configured is None and len(named) > 1:
        raise CredentialsError(
            f"{says}, but all roots of a mesh have the same one; remove the roots of other meshes"
        )
    if configured is None and not named:
        raise CredentialsError(
            f"{where} lacks a trust domain (a URI, for example spiffe://cluster.local), which "
            "is normal for a CA that Meshwright did not create; give the trust domain "
            "with --trust-domain (or MESHWRIGHT_TRUST_DOMAIN), or in a file "
            f"{TRUST_DOMAIN_FILE} in the same directory as {AUTHORITY_FILE}"
        )
    return configured or named[0]


def certificate(path: Path) -> PeerCertificate:
    """Return the first certificate of a file; raise CredentialsError."""
    return _certificate(path, required(path))


def _certificate(path: Path, pem: bytes) -> PeerCertificate:
    try:
        return read_peer(pem)
    except PeerRefused as error:
        raise CredentialsError(f"{path} is not a certificate in PEM") from error


def _name(chain: Path, shown: PeerCertificate) -> ProxyName:
    try:
        return ProxyName.parse(shown.common_name)
    except ProxyNameError as error:
        raise CredentialsError(f"{chain} is not the certificate of a proxy: {error}") from error
