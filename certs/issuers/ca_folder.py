"""A CA in a folder of the state directory: `ca.pem`, `ca.key`, and `roots.pem` for an intermediate."""

import os
import shutil
from pathlib import Path
from typing import Final

from certs.errors import StateError
from certs.issuers.root import CaNames, fingerprint_of_ca
from certs.issuers.stored_ca import StoredCa, Unreadable
from certs.keys.material import PrivateKey
from certs.state import files
from certs.state.sealing import PLAIN, Seal, UnopenedError

FOLDER: Final = "ca"
"""Name of the signing CA's folder in the state directory."""

_CERTIFICATE: Final = "ca.pem"
_KEY: Final = "ca.key"
_ROOTS: Final = "roots.pem"
_AWAY: Final = (
    "restore the right files, or move the directory away so that the server creates a "
    "new CA (then all proxy certificates must be issued again)"
)


def names_in(directory: Path) -> CaNames:
    """Return the paths of the files of a CA, for error messages."""
    certificate, key, roots = (str(directory / name) for name in (_CERTIFICATE, _KEY, _ROOTS))
    return CaNames(certificate, key, roots, _AWAY)


def fingerprint_in(directory: Path) -> str:
    """Return the fingerprint of the CA in a directory, valid or not; empty without a CA."""
    content = files.read(directory / _CERTIFICATE)
    return "" if content is None else fingerprint_of_ca(str(directory / _CERTIFICATE), content, _AWAY)


def read_ca(directory: Path, seal: Seal = PLAIN) -> StoredCa | None:
    """Return the CA in a directory, even a part of one; None without certificate and key."""
    if directory.is_symlink() and not directory.exists():
        broken = Unreadable(f"{directory} is a symbolic link to a missing directory")
        return StoredCa(broken, broken)
    certificate, key = _part(directory / _CERTIFICATE), _part(directory / _KEY)
    if certificate is None and key is None:
        return None
    opened = _opened(directory / _KEY, key, seal) if isinstance(key, bytes) else key
    return StoredCa(certificate, opened, _read(directory / _ROOTS))


def write_ca(directory: Path, staging: Path, stored: StoredCa, seal: Seal) -> None:
    """Write a complete CA to a directory atomically, by the rename of `staging`. Raises StateError.

    `seal` encrypts the key if configured. Both files appear together, so a crash never leaves only one.
    """
    contents = {
        _KEY: None if not isinstance(stored.key, PrivateKey) else seal.closed(stored.key.reveal()),
        _CERTIFICATE: stored.certificate,
        _ROOTS: stored.roots,
    }
    try:
        if staging.exists():
            shutil.rmtree(staging)  # left by a process that crashed here; the lock excludes a running one
        files.private_directory(staging)
        for name, content in contents.items():
            if isinstance(content, bytes):
                files.write_private(staging / name, content)
        os.rename(staging, directory)  # noqa: PTH104 - this one replaces an empty directory, as we need
        files.sync_directory(directory.parent)
    except OSError as error:
        raise StateError(f"cannot create the CA in {directory}: {error.strerror}") from error


def _opened(path: Path, content: bytes, seal: Seal) -> PrivateKey | Unreadable:
    try:
        return PrivateKey(seal.opened(content))
    except UnopenedError as error:
        return Unreadable(f"CA key {path} cannot be used: {error}")
    except ValueError as error:
        return Unreadable(f"CA key {path} cannot be used: {error}; {_AWAY}")


def _part(path: Path) -> bytes | Unreadable | None:
    """Return the content of a file that every CA has.

    A link to a missing file, for example on a volume that is not mounted, is a part of a CA: otherwise a new
    CA would be created in its place.
    """
    content = _read(path)
    if content is None and path.is_symlink():
        return Unreadable(f"{path} is a symbolic link to a missing file; {_AWAY}")
    return content


def _read(path: Path) -> bytes | Unreadable | None:
    try:
        return files.read(path)
    except StateError as error:
        return Unreadable(str(error))
