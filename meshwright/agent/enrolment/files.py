"""The proxy's files while they are made anew: there is always a pair that fits, or one to be completed.

A new key stands as `proxy.key.next` before anybody is asked to certify it, and is used again if the answer is
lost. A new certificate stands as `proxy.pem.next` before either is moved to its place.
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
"""In which the id of the token stands by which this machine has joined: another one is for joining again."""


def complete(directory: Path) -> None:
    """Finish what a process has begun that died; raise OSError.

    The certificate is there only once it is whole; its key may have been moved already.
    """
    if not (directory / NEXT_CHAIN).exists():
        return
    if (directory / NEXT_KEY).exists():
        (directory / NEXT_KEY).replace(directory / KEY_FILE)
    (directory / NEXT_CHAIN).replace(directory / CHAIN_FILE)
    files.sync_directory(directory)


def put(directory: Path, chain: bytes, authority: bytes, domain: TrustDomain | None = None) -> None:
    """Put a certificate for the next key, and its roots, in their places; raise StateError, OSError."""
    put_authority(directory, authority, domain)
    files.write_private(directory / NEXT_CHAIN, chain)
    complete(directory)


def put_authority(directory: Path, authority: bytes, domain: TrustDomain | None = None) -> None:
    """Put roots in their place, if they are others, and their mesh's trust domain; raise StateError.

    The next roots need not name it.
    """
    _put(directory / AUTHORITY_FILE, authority)
    if domain is not None:
        _put(directory / TRUST_DOMAIN_FILE, f"{domain}\n".encode("ascii"))


def _put(path: Path, content: bytes) -> None:
    if files.read(path) != content:
        files.write_private(path, content)


def next_key(directory: Path) -> PrivateKey | None:
    """Return the key that waits for its certificate; raise StateError."""
    content = files.read(directory / NEXT_KEY)
    return None if content is None else PrivateKey(content)


def put_next_key(directory: Path, key: PrivateKey) -> None:
    """Keep a key before its certificate is asked for; raise StateError."""
    files.private_directory(directory)
    files.write_private(directory / NEXT_KEY, key.reveal())


def has_pair(directory: Path) -> bool:
    """Say whether there is a certificate with a key, of whatever worth."""
    return all((directory / name).exists() for name in (CHAIN_FILE, KEY_FILE))


def joined_by(directory: Path) -> str:
    """Return the id of the token by which this machine has joined; empty if it has not. Raises StateError."""
    content = files.read(directory / JOINED)
    return "" if content is None else content.decode("ascii", "replace").strip()


def note_joined(directory: Path, token: str) -> None:
    """Note by which token this machine has joined; raise StateError."""
    files.write_private(directory / JOINED, f"{token}\n".encode("ascii", "replace"))
