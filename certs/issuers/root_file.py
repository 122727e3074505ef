"""Roots that somebody has put into a file, where an issuer does not show its own."""

from pathlib import Path

from certs.errors import StateError
from certs.keys.bundle import TrustBundle
from certs.state import files


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
