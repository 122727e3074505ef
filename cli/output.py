"""Writing files for people and proxies: complete or not at all, private where they must be."""

import os
import tempfile
from pathlib import Path


def write(path: Path, content: bytes, mode: int) -> None:
    """Replace `path` by `content` with the permissions `mode`, in one step."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_credentials(directory: Path, chain: bytes, key: bytes, authority: bytes) -> None:
    """Write `proxy.pem`, `proxy.key` (0600) and `ca.pem` into `directory`, which is made if missing.

    The key goes first: whoever sees a new certificate finds its key.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    write(directory / "proxy.key", key, 0o600)
    write(directory / "ca.pem", authority, 0o644)
    write(directory / "proxy.pem", chain, 0o644)
