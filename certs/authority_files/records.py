"""Small files of the authority: issuers of each role, CAs of Secrets, and the first proxy certificate."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from certs.errors import StateError
from certs.issuers.stored_ca import Unreadable
from certs.issuers.succeeding_issuer import Role
from certs.issuers.succession import Succession
from certs.issuers.succession import read as read_succession
from certs.issuers.succession import written as written_succession
from certs.roots.declared_roots import read_records, written_records
from certs.roots.rotation import Fingerprint
from certs.state import files
from meshwright.mesh.names import SecretName

ISSUERS: Final[Mapping[Role, str]] = {Role.SERVICES: "issuer.json", Role.CHANNEL: "authority.json"}
DECLARED_ROOTS: Final = "declared-roots.json"

Content = bytes | Unreadable | None
"""Content of a file; None if the file is missing."""

_FORMER: Final = (
    "The file has the roots of earlier issuers, which the mesh still trusts; restore it from a backup, or "
    "move it away if this is the first issuer or if all certificates of earlier issuers have expired"
)
_DECLARED: Final = (
    "restore it from a backup, or remove it (then the server takes an active MeshRootCertificate as the "
    "root in force)"
)

T = TypeVar("T")


def content_of(path: Path) -> Content:
    """Return the content of a file, or the reason why it cannot be read."""
    try:
        return files.read(path)
    except StateError as error:
        return Unreadable(str(error))


def parsed(content: Content, parse: Callable[[bytes], T]) -> T | Unreadable | None:
    """Return the value in a file. `parse` raises StateError for a damaged one."""
    if not isinstance(content, bytes):
        return content
    try:
        return parse(content)
    except StateError as error:
        return Unreadable(str(error))


def issuers_in(path: Path, content: Content) -> Succession | Unreadable | None:
    """Return the issuers in `issuer.json` or `authority.json`."""

    def parse(text: bytes) -> Succession:
        try:
            return read_succession(text)
        except ValueError as error:
            raise StateError(f"{path} is damaged: {error}. {_FORMER}") from error

    return parsed(content, parse)


def declared_roots_in(path: Path, content: Content) -> Mapping[SecretName, Fingerprint] | Unreadable:
    """Return the CA of each Secret in `declared-roots.json`; empty without the file."""

    def parse(text: bytes) -> Mapping[SecretName, Fingerprint]:
        try:
            return read_records(text)
        except ValueError as error:
            raise StateError(f"{path} is damaged: {error}; {_DECLARED}") from error

    return parsed(content, parse) or {}


def write_issuers(path: Path, succession: Succession | Unreadable | None) -> None:
    """Write `issuer.json` or `authority.json`. Raises StateError."""
    if isinstance(succession, Succession):
        files.write_private(path, written_succession(succession))


def write_declared_roots(path: Path, roots: Mapping[SecretName, Fingerprint] | Unreadable) -> None:
    """Write `declared-roots.json`. Raises StateError."""
    if not isinstance(roots, Unreadable):
        files.write_private(path, written_records(roots))


def write_first_proxy(path: Path, serial: str | Unreadable | None) -> None:
    """Write the serial of the first proxy certificate, or remove the file. Raises StateError."""
    if isinstance(serial, str):
        files.write_private(path, f"{serial}\n".encode("ascii"))
    elif serial is None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StateError(f"cannot remove {path}: {error.strerror}") from error
