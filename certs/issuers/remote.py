"""Common part of issuers reached over a network.

Their roots are available without a request: from a file, or as last received.
"""

import threading
from datetime import UTC, datetime
from pathlib import Path

from certs.errors import StateError
from certs.keys.bundle import TrustBundle
from certs.state import files
from meshwright.mesh.names import TrustDomain


class RemoteIssuer:
    """Base class of an issuer reached over a network, with the trust domain and the known roots.

    May be used from several threads at once.
    """

    def __init__(self, trust_domain: TrustDomain, known: TrustBundle) -> None:
        """Begin with the roots in `known`, without a request to the issuer."""
        self._trust_domain = trust_domain
        self._lock = threading.Lock()
        self._bundle = known
        self._ends = datetime.max.replace(tzinfo=UTC)

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain of the certified identities."""
        return self._trust_domain

    def trust_bundle(self) -> bytes:
        """Return the roots from the configured file, or as last received, without a request to the issuer."""
        return self._bundle.pem

    def signing_bundle(self) -> bytes:
        """Return the trust bundle."""
        return self._bundle.pem


def read_configured_roots(setting: str, file: Path) -> TrustBundle:
    """Read the roots from the file in a setting; a StateError names the setting and the file."""
    content = files.read(file)
    if content is None:
        raise StateError(f"{setting} {file} is missing")
    try:
        trust_bundle = TrustBundle.from_pems([content])
    except ValueError as error:
        raise StateError(f"{setting} {file}: {error}") from error
    if not trust_bundle.fingerprints:
        raise StateError(f"{setting} {file} lacks a root certificate; it must have certificates in PEM")
    return trust_bundle
