"""Renewal of a proxy's files, crash-safe: at any time a matching or completable pair exists.

A new key is stored as `proxy.key.next` before a certificate is requested, and is used again if the answer is
lost. A new certificate is stored as `proxy.pem.next` before both are moved to their places.
"""

from pathlib import Path
from typing import Final

from certs.keys.material import PrivateKey
from certs.state import files
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE, TRUST_DOMAIN_FILE

NEXT_KEY: Final = f"{KEY_FILE}.next"
NEXT_CHAIN: Final = f"{CHAIN_FILE}.next"
JOINED: Final = "joined"
"""File with the ID of the used join token; another token means joining again."""


def complete(directory: Path) -> None:
    """Finish a replacement of files that an earlier process began; raise OSError.

    `proxy.pem.next` exists only when complete; the key may have been moved already.
    """
    if not (directory / NEXT_CHAIN).exists():
        return
    if (directory / NEXT_KEY).exists():
        (directory / NEXT_KEY).replace(directory / KEY_FILE)
    (directory / NEXT_CHAIN).replace(directory / CHAIN_FILE)
    files.sync_directory(directory)


def put(directory: Path, chain: bytes, authority: bytes, domain: TrustDomain | None = None) -> None:
    """Store the roots and the certificate for the pending key, and bring both into use with the key.

    Raises StateError or OSError.
    """
    put_authority(directory, authority, domain)
    files.write_private(directory / NEXT_CHAIN, chain)
    complete(directory)


def put_authority(directory: Path, authority: bytes, domain: TrustDomain | None = None) -> None:
    """Store the roots if they changed, and the mesh's trust domain, which later roots need not name.

    Raises StateError.
    """
    _put(directory / AUTHORITY_FILE, authority)
    if domain is not None:
        _put(directory / TRUST_DOMAIN_FILE, f"{domain}\n".encode("ascii"))


def _put(path: Path, content: bytes) -> None:
    if files.read(path) != content:
        files.write_private(path, content)


def next_key(directory: Path) -> PrivateKey | None:
    """Return the pending private key, which has no certificate yet; None without one. Raises StateError."""
    content = files.read(directory / NEXT_KEY)
    return None if content is None else PrivateKey(content)


def put_next_key(directory: Path, key: PrivateKey) -> None:
    """Store a private key as the pending one, before its certificate is requested; raise StateError."""
    files.private_directory(directory)
    files.write_private(directory / NEXT_KEY, key.reveal())


def has_pair(directory: Path) -> bool:
    """Return whether the files of the certificate and of the key exist, valid or not."""
    return all((directory / name).exists() for name in (CHAIN_FILE, KEY_FILE))


def joined_by(directory: Path) -> str:
    """Return the ID of the used join token, or the kind of another proof; empty before joining.

    Raises StateError.
    """
    content = files.read(directory / JOINED)
    return "" if content is None else content.decode("ascii", "replace").strip()


def note_joined(directory: Path, token: str) -> None:
    """Store the ID of the used join token, or the kind of another proof; raise StateError."""
    files.write_private(directory / JOINED, f"{token}\n".encode("ascii", "replace"))
