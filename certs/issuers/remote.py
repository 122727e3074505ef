"""Issuers that are asked across a network: what they have in common.

Such an issuer answers for its roots without asking anybody: from a file, or as it showed them last.
"""

import threading
from datetime import UTC, datetime
from pathlib import Path

from certs.errors import StateError
from certs.keys.bundle import TrustBundle
from certs.state import files
from meshwright.mesh.names import TrustDomain


class RemoteIssuer:
    """Base of an issuer that is asked across a network: its trust domain, and the roots that are known of it.

    May be used from several threads at once.
    """

    def __init__(self, trust_domain: TrustDomain, known: TrustBundle) -> None:
        """Begin with roots that are known, without asking."""
        self._trust_domain = trust_domain
        self._lock = threading.Lock()
        self._bundle = known
        self._ends = datetime.max.replace(tzinfo=UTC)

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain whose identities it certifies."""
        return self._trust_domain

    def trust_bundle(self) -> bytes:
        """Return its roots: those of the file, or those it showed last; asks nobody."""
        return self._bundle.pem

    def signing_bundle(self) -> bytes:
        """Return the same."""
        return self._bundle.pem


def given_roots(setting: str, file: Path) -> TrustBundle:
    """Read the roots in the file of a setting; raise StateError, which names both."""
    content = files.read(file)
    if content is None:
        raise StateError(f"{setting} {file} is missing")
    try:
        found = TrustBundle.of([content])
    except ValueError as error:
        raise StateError(f"{setting} {file}: {error}") from error
    if not found.fingerprints:
        raise StateError(f"{setting} {file} holds no root: must hold certificates in PEM")
    return found
